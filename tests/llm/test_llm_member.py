"""Members of the recipe llm: what they ask, what they make of the answers, and what they keep.

What a server answers is a function here; `test_llm_server.py` asks a real one.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import edo, invoke
from edokit import Annotations, EDOWarning, InputError, Scale
from edokit.members import (
    Group,
    MemberData,
    parse_groups,
    preview_training,
    score_members,
    train_members,
)
from edokit.members.loaded import load_member
from edokit.members.recipes import _endpoint
from edokit.members.recipes._completions import Completion
from edokit.members.recipes._endpoint import Endpoint, Request, RequestRefusedError
from edokit.members.recipes.llm import LanguageModel
from edokit.members.texts import Texts
from fuzz_damage import revalued
from tests.errors import raises_code

HERE = "http://127.0.0.1:9/v1"
THERE = "https://llm.example.org/v1"
LABELS = ("polite", "rude")
WHO = ("ann", "bob", "cem")
Reply = Callable[[Mapping[str, Any]], Completion]
Serve = Callable[[Reply], list[Mapping[str, Any]]]
"""From a function that answers requests to the list of the requests that were sent."""


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Have requests answered by a function; the bodies of those that were sent."""

    def serve(reply: Reply) -> list[Mapping[str, Any]]:
        sent: list[Mapping[str, Any]] = []

        def attempt(self: Endpoint, transport: Any, request: Request) -> Completion:
            sent.append(request.body)
            return reply(request.body)

        monkeypatch.setattr(Endpoint, "_attempt", attempt)
        monkeypatch.setattr(_endpoint, "_open_transport", lambda *_: nullcontext())
        return sent

    return serve


def prompt_of(body: Mapping[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def by_word(body: Mapping[str, Any]) -> Completion:
    """The label B with a probability of 0.9 for texts with "fool" in them, else of 0.2."""
    p = 0.9 if "fool" in prompt_of(body).rpartition("Text:")[2] else 0.2
    top = [["B", math.log(p)], ["A", math.log(1 - p)]]
    return Completion("B", [[top[0], *top]] if "logprobs" in body else None, 40, 1)


def people(n: int = 12) -> Annotations:
    rows = [
        (f"i{i}", who, LABELS[(i + k) % 3 == 0], f"a {'fool' if i % 2 else 'fine day'}, {i}")
        for i in range(n)
        for k, who in enumerate(WHO)
    ]
    table = dict(zip(("item", "annotator", "label", "text"), zip(*rows, strict=True), strict=True))
    splits = [("train", "dev", "test")[i * 3 // n] for i in range(n) for _ in WHO]
    return Annotations.from_table({**table, "split": splits}, classes=LABELS)


def fitted(scale: Scale | None = None, classes: Any = LABELS, **options: Any) -> LanguageModel:
    member = LanguageModel(len(classes), **{"base_url": HERE, "model": "m", **options})
    data = MemberData([], lambda epoch: np.zeros((0, 2)), classes=classes, scale=scale or Scale())
    return member.fit(data, random_state=0)


def group(**options: Any) -> list[Group]:
    return [Group("llm", members=1, options={"base_url": HERE, "model": "m", **options})]


def test_probabilities_are_the_keys_and_a_text_is_asked_once(server: Serve) -> None:
    sent = server(by_word)
    member = fitted(price_in=1.0, price_out=2.0)
    texts = ["what a fool", "a fine day", "what a fool"]
    np.testing.assert_allclose(member.predict_proba(texts)[:, 1], [0.9, 0.2, 0.9])
    np.testing.assert_allclose(member.predict_proba(texts)[:, 1], [0.9, 0.2, 0.9])
    assert len(sent) == 2
    assert member.predict_proba([]).shape == (0, 2)
    assert {body["top_logprobs"] for body in sent} == {20}
    info = dict(member.details)
    assert (info["requests"], info["failures"], info["probabilities"]) == (4, 0, "logprobs")
    assert info["cost"] == pytest.approx(42 / 1e6)


def test_samples_are_counted_with_smoothing_and_failures_left_out(server: Serve) -> None:
    replies = iter(["B", "hm", "B", "A"])
    sent = server(lambda body: Completion(next(replies), None))
    member = fitted(probabilities="samples", samples=4, smoothing=0.5, concurrency=1)
    with pytest.warns(EDOWarning, match="1 of 4 answers"):
        shares = member.predict_proba(["good day"])
    np.testing.assert_allclose(shares, [[1.5 / 4, 2.5 / 4]])
    assert len(sent) == 4
    assert all("logprobs" not in body and body["temperature"] == 1.0 for body in sent)
    assert member.details["answers"] == 3
    assert member.details["probabilities"] == "4 samples"


def test_a_server_without_log_probabilities_is_found_out_once(server: Serve) -> None:
    sent = server(lambda body: Completion("A", None))
    for _ in range(2):
        fitted(samples=3).predict_proba(["one", "two"])
    assert sum("logprobs" in body for body in sent) == 1
    assert len(sent) == 1 + 6


def test_a_model_that_never_names_a_label_costs_twenty_prompts(server: Serve) -> None:
    sent = server(lambda body: Completion("It depends on the day.", None))
    member = fitted(probabilities="samples", samples=1)
    with raises_code("unusable-answers", "20"):
        member.predict_proba([f"text {k}" for k in range(50)])
    assert len(sent) == 20


def test_an_annotators_own_labels_are_shown_and_nobody_elses(server: Serve) -> None:
    sent = server(by_word)
    data = people()
    trained = train_members(data, group(examples=2))
    pairs = trained.predictions["dev-pairs"]
    assert set(map(str, pairs.annotators)) == {*WHO, ""}
    train = data.split("train")
    labels = {
        (str(train.annotators[a]), str(train.texts[i])): LABELS[label]
        for i, a, label in zip(
            train.item_codes, train.annotator_codes, train.label_codes, strict=True
        )
    }
    shown = [prompt_of(body) for body in sent]
    assert sum("Answer as one annotator" not in one for one in shown) == 8  # dev and test
    for one in shown:
        texts = [line[6:] for line in one.splitlines() if line.startswith("Text: ")]
        answers = [line[8:] for line in one.splitlines() if line.startswith("Answer: ")]
        replies = [
            (text, LABELS["AB".index(key)]) for text, key in zip(texts, answers, strict=True)
        ]
        assert len(replies) in (0, 2)
        assert any(all(labels.get((who, t)) == y for t, y in replies) for who in WHO)


def test_an_annotator_without_labels_gets_the_anonymous_answer(server: Serve) -> None:
    server(lambda body: Completion("B" if "one annotator" in prompt_of(body) else "A", None))
    member = fitted(probabilities="samples", samples=1)
    member._examples = {"ann": [("good day", [0])]}
    probabilities = member.predict_proba(
        ["one"] * 4, annotators=[["ann"], ["zoe"], [], ["ann", "zoe"]]
    )
    np.testing.assert_allclose(probabilities[1], member.predict_proba(["one"])[0])
    np.testing.assert_allclose(probabilities[2], probabilities[1])
    np.testing.assert_allclose(probabilities[3], (probabilities[0] + probabilities[1]) / 2)
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]
    with raises_code("lengths-differ", "1", "2"):
        member.predict_proba(["one"], annotators=[["ann"], ["ann"]])


def test_each_label_of_a_set_is_asked_for_on_its_own(server: Serve) -> None:
    sent = server(lambda body: Completion("yes" if "\njoy" in prompt_of(body) else "No.", None))
    member = fitted(Scale("multi-label"), ("joy", "anger", "fear"), samples=1, smoothing=0.0)
    np.testing.assert_array_equal(member.predict_proba(["good day"]), [[1, 0, 0]])
    sampled = [body for body in sent if "logprobs" not in body]
    assert len(sampled) == 3
    assert all("yes" in prompt_of(body) and "no" in prompt_of(body) for body in sampled)


def test_a_template_asks_about_one_label_of_sets_and_lists_all_others() -> None:
    for scale, template in ((Scale("multi-label"), "{labels} {text}"), (None, "{label} {text}")):
        with raises_code("invalid-prompt"):
            fitted(scale, prompt=template)


def test_persona_context_and_descriptions_are_where_they_belong(
    server: Serve, tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("rude: hurts somebody\n")
    (tmp_path / "cook.txt").write_text("You are a cook.\n")
    sent = server(by_word)
    (checked,) = parse_groups(
        "llm",
        options={
            "model": "m",
            "base_url": HERE,
            "persona": str(tmp_path / "cook.txt"),
            "label_descriptions": str(tmp_path / "labels.txt"),
        },
    )
    fitted(**checked.options).predict_proba([("oh {text}", "a post"), ("well", "")])
    first, second = sent
    assert first["messages"][0] == {"role": "system", "content": "You are a cook."}
    assert "A. polite\nB. rude: hurts somebody\n" in prompt_of(first)
    assert "Context:\na post\n\nText:\noh {text}\n" in prompt_of(first)
    assert "Context" not in prompt_of(second)
    sent.clear()
    own = fitted(prompt="{persona} {text} {context} {labels}", persona="You are a cook.")
    own.predict_proba([("oh", "a post")])
    (only,) = sent[0]["messages"]
    assert only["content"] == "You are a cook. oh a post A. polite\nB. rude"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model": ""}, "model"),
        ({"base_url": ""}, "OPENAI_BASE_URL"),
        ({"base_url": "http://me:sesame@host/v1"}, "base_url"),
        ({"prompt": "Label {txt}: {text}"}, "{txt}"),
        ({"prompt": "Label it"}, "{text}"),
        ({"prompt": "no-such-prompt.txt"}, "no-such-prompt.txt"),
        ({"prompt": "{text}", "examples": 3}, "{examples}"),
        ({"prompt": "Does {label} fit {text}?"}, "{labels}"),
        ({"label_descriptions": "cruel: hurts"}, "cruel"),
        ({"probabilities": "guess"}, "probabilities"),
        ({"extra": "[1]"}, "extra"),
        ({"extra": '{"top_p": NaN}'}, "extra"),
        ({"extra": '{"api": "sk-sesame-123"}'}, "OPENAI_API_KEY"),
        ({"persona": "My key is sk-sesame-123."}, "OPENAI_API_KEY"),
        ({"extra": '{"stream": true}'}, "stream"),
        ({"samples": 0}, "samples"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_asked(
    server: Serve, options: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-sesame-123")
    sent = server(by_word)
    with pytest.raises(InputError) as raised:
        train_members(people(), group(**options))
    assert named in str(raised.value)
    assert "sesame" not in str(raised.value)
    assert not sent


def test_more_labels_than_letters_are_sampled(server: Serve) -> None:
    sent = server(lambda body: Completion("27", None))
    classes = tuple(f"label {k}" for k in range(27))
    shares = fitted(classes=classes, samples=2).predict_proba(["good day"])
    assert shares.argmax() == 26
    assert not any("logprobs" in body for body in sent)


def test_folds_change_nothing_and_each_item_is_asked_once(server: Serve, tmp_path: Path) -> None:
    sent = server(by_word)
    trained = train_members(people(), group(), cross_fit=2, out=tmp_path / "members")
    assert len(trained.predictions["fit"]) == 8
    assert len(trained.predictions["test"]) == 4
    assert len(sent) == 12
    second_trained = train_members(people(), group(), cross_fit=2, out=tmp_path / "members")
    assert len(sent) == 12
    assert not second_trained.failed
    scored = score_members(tmp_path / "members", ["another fool"])
    np.testing.assert_allclose(scored.probabilities[0, 0], [0.1, 0.9])


def test_other_speed_and_prices_are_the_same_member(server: Serve, tmp_path: Path) -> None:
    sent = server(by_word)
    train_members(people(), group(), out=tmp_path / "members")
    asked = len(sent)
    others = {"concurrency": 2, "timeout": 5.0, "retries": 1, "price_in": 3.0}
    train_members(people(), group(**others), out=tmp_path / "members")
    assert len(sent) == asked
    with raises_code("other-settings"):
        train_members(people(), group(temperature=0.5), out=tmp_path / "members")


def test_predictions_and_manifest_hold_what_it_is_and_costs(server: Serve, tmp_path: Path) -> None:
    server(by_word)
    options = {"persona": "You are a cook.", "price_in": 1.0, "price_out": 0.0}
    trained = train_members(people(), group(**options), out=tmp_path / "members")
    (info,) = trained.predictions["dev"].member_info.values()
    assert info["persona"] == "You are a cook."
    assert info["cost"] == pytest.approx(4e-5)
    assert trained.manifest["members"][0]["details"] == info
    scored = score_members(tmp_path / "members", ["another fool", "a day"])
    assert scored.member_info["llm-01"]["cost"] == pytest.approx(4e-5)
    assert scored.member_info["llm-01"]["requests"] == 2


def test_a_spent_budget_keeps_what_is_finished(server: Serve, tmp_path: Path) -> None:
    sent = server(by_word)
    models = {"model": ["one", "two", "three"], "price_in": 1e5, "price_out": 0.0}
    out = tmp_path / "members"  # a request costs 4, and could cost 13
    trained = train_members(people(), group(**models), out=out, budget=43)
    assert [one.job.member for one in trained.failed] == ["llm-two-01", "llm-three-01"]
    assert len(sent) == 8
    assert len({one.reason for one in trained.failed}) == 1
    assert trained.predictions["dev"].members == ("llm-one-01",)
    full_trained = train_members(people(), group(**models), out=out, budget=100)
    assert len(sent) == 24
    assert len(full_trained.predictions["dev"].members) == 3
    with raises_code("exceeded-budget", "1.5"):
        score_members(out, ["new one", "new two"], budget=1.5)
    assert len(score_members(out, ["new one", "new two"], budget=60)) == 2
    assert len(sent) == 24 + 6


def test_a_budget_needs_prices_and_a_limit_on_answers(server: Serve) -> None:
    server(by_word)
    with raises_code("failed-member", "price_in"):
        train_members(people(), group(), budget=1.0)
    priced = {"price_in": 1.0, "price_out": 1.0, "max_tokens": None}
    with raises_code("failed-member", "max_tokens"):
        train_members(people(), group(**priced), budget=1.0)
    extra = '{"max_completion_tokens": 20}'
    assert train_members(people(), group(**priced, extra=extra), budget=1.0).predictions


def test_a_text_that_a_server_refuses_is_named_by_its_item(server: Serve, tmp_path: Path) -> None:
    def short_alone(body: Mapping[str, Any]) -> Completion:
        if "long" in prompt_of(body).rpartition("Text:")[2]:
            raise RequestRefusedError("status 400", "correct the options", code="refused-request")
        return by_word(body)

    server(short_alone)
    train_members(people(), group(), out=tmp_path / "members")
    for texts, name in (
        (Texts(("a", "b"), ("fine", "a long text")), "the text of item 'b'"),
        (["a long text", "fine"], "text 1:"),
    ):
        with raises_code("refused-request", name, "status 400"):
            score_members(tmp_path / "members", texts)


def test_names_of_prompts_and_personas_are_what_tables_show(server: Serve) -> None:
    server(by_word)
    named = {"cook": "You are a cook.", "nobody": ""}
    options = {"base_url": HERE, "model": "one", "persona": named, "prompt": ["{text}\n{labels}"]}
    trained = train_members(people(), Group("llm", 1, name="jury", options=options).expanded())
    info = trained.predictions["dev"].member_info.values()
    assert [one["persona"] for one in info] == ["cook", "nobody"]
    assert {one["prompt"] for one in info} == {"{text} {labels}"}  # a list gives none


def test_a_member_from_a_folder_asks_only_where_people_say(
    server: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = server(by_word)
    out = tmp_path / "members"
    train_members(people(), group(base_url=THERE), out=out)
    before = len(sent)
    with raises_code("untrusted-address", "trust='https"):
        score_members(out, ["new"])
    assert len(sent) == before
    assert len(score_members(out, ["new"], trust=[THERE])) == 1
    monkeypatch.setenv("OPENAI_BASE_URL", THERE)
    assert load_member(out / "members" / "llm-01").known_annotators == ()
    texts = tmp_path / "texts.txt"
    texts.write_text("new\n")
    monkeypatch.delenv("OPENAI_BASE_URL")
    words = ["score", "--members", out, "--texts", texts, "--out", tmp_path / "p.npz"]
    ran = invoke(*words)
    assert isinstance(ran.exception, InputError)
    ran = invoke(*words, "--trust", THERE, "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["member_info"]["llm-01"]["requests"] == 1


def test_no_file_of_groups_decides_where_texts_go(tmp_path: Path) -> None:
    path = tmp_path / "jury.toml"
    path.write_text(f'[[group]]\nrecipe = "llm"\noptions = {{model = "m", base_url = "{THERE}"}}\n')
    with raises_code("untrusted-address", "jury.toml", "base_url='https"):
        parse_groups(str(path))
    for named in ("base_url", "llm.base_url"):  # by the person, in its place
        (one,) = parse_groups(str(path), options={named: THERE})
        assert one.options["base_url"] == THERE
    path.write_text(path.read_text().replace(THERE, HERE))
    assert parse_groups(str(path))[0].options["base_url"] == HERE


def test_what_it_keeps_comes_back_and_holds_no_key(
    server: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    server(by_word)
    out = tmp_path / "members"
    train_members(people(), group(examples=2, prompt="{examples}{labels}Text:{text}"), out=out)
    member = load_member(out / "members" / "llm-01")
    assert member.known_annotators == WHO
    path = out / "members" / "llm-01" / "llm.json"
    path.write_text(path.read_text().replace('"auto"', '"logprobs"'))  # as earlier builds wrote
    again = LanguageModel.load(out / "members" / "llm-01")
    assert again.get_params() == member.get_params()
    assert again.predict_proba(["a fool"]).shape == (1, 2)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"sk-planted" not in path.read_bytes()


def test_a_saved_member_reads_no_file_that_its_options_name(server: Serve, tmp_path: Path) -> None:
    sent = server(by_word)
    secret = tmp_path / "secret.txt"
    secret.write_text("a planted secret")
    fitted().save(tmp_path)
    content = json.loads((tmp_path / "llm.json").read_text())
    content["options"] |= {"persona": str(secret), "prompt": f"{secret} {{text}} {{labels}}"}
    (tmp_path / "llm.json").write_text(json.dumps(content))
    LanguageModel.load(tmp_path).predict_proba(["good day"])
    assert sent
    assert "planted" not in json.dumps(sent)


def test_a_damaged_file_is_one_error(server: Serve, tmp_path: Path) -> None:
    server(by_word)
    for content in ("{}", "[]", '{"options": {"model": 3}, "classes": ["a"]}'):
        (tmp_path / "llm.json").write_text(content)
        with raises_code("wrong-content", "llm.json"):
            LanguageModel.load(tmp_path)


@pytest.mark.filterwarnings("ignore:.*no label:edokit.EDOWarning")
def test_a_mutated_file_is_refused_or_can_be_used(server: Serve, tmp_path: Path) -> None:
    server(lambda body: Completion("A", None))
    member = fitted(Scale("ordinal", (1, 2)), examples=0, label_descriptions="rude: hurts")
    member._examples = {"ann": [("good day", [0]), (("oh", "a post"), [1])]}
    member.save(tmp_path)
    content = (tmp_path / "llm.json").read_bytes()
    rng = random.Random(0)
    loaded = 0
    for _ in range(300):
        (tmp_path / "llm.json").write_bytes(revalued(content, rng))
        again = None
        with suppress(InputError):
            again = LanguageModel.load(tmp_path)
        if again is None:
            with pytest.raises(InputError, match=r"llm\.json|member in"):
                LanguageModel.load(tmp_path)
            continue
        again._server.retries = 0
        assert again.predict_proba(["fine"], annotators=[["ann"]]).shape == (1, 2)
        again.save(tmp_path)
        loaded += 1
    assert 0 < loaded < 300


def test_a_jury_is_one_command(server: Serve, tmp_path: Path) -> None:
    from edokit._io.tables import write_table

    sent = server(by_word)
    write_table(people().to_table(), tmp_path / "votes.csv")
    several = ("model=one", "model=two", "persona=You cook.", "persona=You sail.")
    words = ["train", tmp_path / "votes.csv", "--recipe", "llm", "--out", tmp_path / "out"]
    for option in (f"base_url={HERE}", "price_in=1", "price_out=1", *several):
        words += ["--option", option]
    ran = invoke(*words, "--json")
    assert ran.exit_code == 0, ran.output
    found = [member["details"] for member in json.loads(ran.stdout)["members"]]
    assert len({(one["model"], one["persona"]) for one in found}) == 4
    completed = edo(*words)
    assert "tokens in" in completed.stdout
    assert "per item" in completed.stdout
    assert "failures" in completed.stdout
    assert len(sent) == 32


def dry_run_words(tmp_path: Path, *options: str) -> list[Any]:
    from edokit._io.tables import write_table

    write_table(people().to_table(), tmp_path / "votes.csv")
    words: list[Any] = ["train", tmp_path / "votes.csv", "--recipe", "llm"]
    words += ["--out", tmp_path / "out", "--dry-run"]
    for option in (f"base_url={HERE}", "model=one", "price_in=1", "price_out=2", *options):
        words += ["--option", option]
    return words


def test_a_dry_run_shows_prompts_and_what_they_cost_and_sends_nothing(
    server: Serve, tmp_path: Path
) -> None:
    sent = server(by_word)
    words = dry_run_words(tmp_path)
    shown = edo(*words).stdout
    assert not sent
    assert not (tmp_path / "out").exists()
    for text in ("a fine day, 4", "a fool, 5", "a fine day, 6"):  # the first three of dev
        assert text in shown
    assert "a fool, 7" not in shown
    assert "A. polite\nB. rude" in shown
    assert HERE in shown
    preview = json.loads(edo(*words, "--json").stdout)
    (member,) = preview["members"]
    assert [prompt["item"] for prompt in member["prompts"]] == ["i4", "i5", "i6"]
    once = member["forecasts"]["log-probabilities"]
    several = member["forecasts"]["samples"]
    assert (once["requests"], several["requests"]) == (8, 8 * 5)
    assert several["tokens_in"] == 5 * once["tokens_in"]
    assert once["tokens_out"] == 8 * 3
    assert once["cost"] == pytest.approx((once["tokens_in"] + 2 * 8 * 3) / 1e6)
    assert once["cost"] < once["most_cost"]


def test_a_dry_run_forecasts_the_requests_that_a_run_then_sends(
    server: Serve, tmp_path: Path
) -> None:
    sent = server(by_word)
    options = group(examples=2, price_in=1.0, price_out=1.0)
    (member,) = preview_training(people(), options).members
    trained = train_members(people(), options, budget=member.forecasts["samples"].most_cost)
    forecast = member.forecasts["log-probabilities"]
    assert len(sent) == forecast.requests
    assert not trained.failed
    (again,) = preview_training(people(), options).members
    cached = again.forecasts["log-probabilities"]
    assert (cached.requests, cached.cached, cached.cost) == (0, len(sent), 0)


def test_a_dry_run_needs_somebody_to_ask(tmp_path: Path) -> None:
    with raises_code("inapplicable-option"):
        preview_training(people(), [Group("linear", members=1)])
    both = [*group(max_tokens=None), Group("linear", members=2)]
    preview = preview_training(people(), both)
    assert preview.silent == 2
    assert preview.members[0].forecasts["samples"].cost is None
