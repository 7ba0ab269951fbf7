"""The small parts of fine-tuning: tokens, heads, losses, adversarial step, rates, epochs."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_transformer import tiny_model, torch

from edokit import Scale
from edokit.members.pretrained import load_backbone, load_tokenizer
from edokit.members.recipes._network import (
    AnnotatorHead,
    Head,
    Link,
    MemberNetwork,
    adversarial_step,
    make_link,
    parameter_groups,
    row_losses,
)
from edokit.members.recipes._tokens import (
    AnnotatorTargets,
    Reader,
    annotator_labels,
    batches_by_length,
    with_speaker_tags,
)
from edokit.members.recipes.transformer import TransformerMember
from edokit.metrics import rps
from tests.errors import raises_code


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def reader(model: str) -> Reader:
    return Reader(load_tokenizer(model), 512)


def link_of(n_classes: int, sets: bool = False) -> Link:
    """The link of classes or, for multi-label data, of labels."""
    if sets:
        return make_link(n_classes, Scale("multi-label"))
    return make_link(n_classes)


def network(model: str, pooling: str = "mean") -> MemberNetwork:
    width = 32 if pooling == "mean+target" else 16
    return MemberNetwork(load_backbone(model), pooling, Head(width, link_of(2))).eval()


def tensors(batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in batch.items()}


# Tokens


def test_the_target_segment_is_the_utterance(reader: Reader) -> None:
    alone, pair = reader(["nice day", ("stop it please", "no thanks")])
    assert alone["target_mask"].tolist() == [0, 1, 1, 0]
    assert pair["target_mask"].tolist() == [0, 1, 1, 1, 0, 0, 0, 0]
    assert pair["token_type_ids"].tolist() == [0] * 5 + [1] * 3


def test_the_context_may_come_first(reader: Reader) -> None:
    forwards = Reader(reader.tokenizer, 512, context_first=True, speaker_tags=True)
    alone, pair, bare = forwards(["nice day", ("stop it please", "no thanks"), ("stop it", "")])
    assert alone["target_mask"].tolist() == [0, 1, 1, 0]
    words = np.array(reader.tokenizer.convert_ids_to_tokens(pair["input_ids"]))
    assert words[1:5].tolist() == ["agent", ":", "no", "thanks"]
    target = pair["target_mask"].astype(bool)
    assert words[target].tolist() == ["user", ":", "stop", "it", "please"]
    assert reader.padded([pair])["target_mask"].sum() == 5
    assert bare["target_mask"].sum() == 4


def test_a_text_without_words_is_its_own_target(reader: Reader) -> None:
    (empty,) = reader([""])
    assert empty["target_mask"].tolist() == [1, 1]


def test_padding_marks_what_is_text(reader: Reader) -> None:
    batch = reader.padded(reader(["nice", "stop it please thanks " * 3]))
    assert batch["input_ids"].shape == (2, 16)
    assert batch["attention_mask"].sum(axis=1).tolist() == [3, 14]
    assert batch["target_mask"].sum(axis=1).tolist() == [1, 12]


def test_padding_never_passes_the_longest_text_that_a_model_takes(reader: Reader) -> None:
    batch = Reader(reader.tokenizer, 21).padded(reader(["stop " * 17]))
    assert batch["input_ids"].shape == (1, 21)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=200),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_batches_hold_every_text_once_and_the_longest_first(
    lengths: list[int], batch_size: int, seed: int
) -> None:
    array = np.array(lengths)
    batches = batches_by_length(array, batch_size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert array[batches[0]].max() == array.max()


def test_batches_hold_texts_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 400)
    batches = batches_by_length(lengths, 8, np.random.default_rng(0))
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 5


def test_speaker_tags_go_back_from_the_utterance() -> None:
    tagged = with_speaker_tags(("yes", "go on\nno\nwhy"))
    assert tagged == ("user: yes", "agent: go on\nuser: no\nagent: why")
    assert with_speaker_tags(("yes", "")) == ("user: yes", "")
    assert with_speaker_tags("yes") == "yes"


# Heads


def test_padding_does_not_change_the_answer(model: str, reader: Reader) -> None:
    short, long = reader(["nice day", "stop it please thanks again"])
    for pooling in ("first", "last", "mean", "mean+target"):
        torch.manual_seed(0)
        net = network(model, pooling)
        alone = net(**tensors(reader.padded([short])))
        together = net(**tensors(reader.padded([short, long])))[:1]
        torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)


def test_heads_start_as_quiet_on_loud_features(model: str, reader: Reader) -> None:
    batch = tensors(reader.padded(reader(["nice day", "stop it please"])))
    torch.manual_seed(0)
    net = network(model).train()
    before = net.head.shared.weight.detach().clone()
    for name, weight in net.backbone.named_parameters():
        if "LayerNorm.weight" in name:
            last = weight
    with torch.no_grad():
        last.mul_(1e-3)
    net.rescale_heads(**batch)
    assert torch.equal(net.head.shared.weight, before)  # soft features: nothing to do
    with torch.no_grad():
        last.mul_(3e4)
    loud = net.eval()(**batch).std()
    net.train().rescale_heads(**batch)
    assert net.training
    assert net.eval()(**batch).std() < loud / 5
    assert net.head.shared.bias.abs().sum() == 0  # the prior is no matter of loudness


def test_heads_that_know_annotators_leave_quiet_features_as_they_are() -> None:
    head = people_head()
    before = head.first.weight.detach().clone()
    with torch.no_grad():
        head.rescale(torch.tensor(0.1))
    assert torch.equal(head.first.weight, before)
    assert head.scale == 1.0


@pytest.mark.parametrize("loudness", [1.0, 30.0])
def test_annotators_count_alike_beside_loud_features(loudness: float) -> None:
    head = people_head()
    pooled = torch.randn(2, 6)
    pairs = torch.tensor([0, 1]), torch.tensor([0, 1])
    wanted = head(pooled, *pairs)
    with torch.no_grad():
        head.rescale(torch.tensor(loudness))
    torch.testing.assert_close(head(loudness * pooled, *pairs), wanted)


def test_pooling_over_the_target_tells_utterance_from_context(model: str, reader: Reader) -> None:
    torch.manual_seed(0)
    net = network(model, "mean+target")
    batch = tensors(reader.padded(reader([("nice", "rude")])))
    other = {**batch, "target_mask": batch["attention_mask"]}
    assert not torch.allclose(net(**batch), net(**other))


PEOPLE = (8.0, 1.0, 0.0)
STEPS = torch.ones(3)


def people_head(sets: bool = False, classes: int = 4) -> AnnotatorHead:
    """A head whose annotators have learned something."""
    torch.manual_seed(0)
    head = AnnotatorHead(6, link_of(classes, sets=sets), PEOPLE).eval()
    torch.nn.init.normal_(head.vectors, std=5.0)
    torch.nn.init.normal_(head.offsets)
    return head


@pytest.mark.parametrize("sets", [False, True])
def test_heads_start_at_the_mean_of_the_targets(sets: bool) -> None:
    targets = np.array([[1.0, 0.0, 0.0, 0.0]] * 4 + [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    totals = targets.sum(axis=0) + 1.0
    wanted = totals / (8.0 if sets else totals.sum())
    for head, prior in (
        (Head(6, link_of(4, sets=sets)), (targets,)),
        (AnnotatorHead(6, link_of(4, sets=sets), PEOPLE).eval(), (targets, np.zeros((3, 4)))),
    ):
        head.set_prior(*prior)
        found = head.link.probabilities(head(torch.zeros(3, 6)))
        assert found.shape == (3, 4)
        np.testing.assert_allclose(found.detach(), np.tile(wanted, (3, 1)), rtol=1e-5)


@pytest.mark.parametrize("sets", [False, True])
def test_an_annotator_is_a_vector_and_a_bias_shrunk_by_labels(sets: bool) -> None:
    head = people_head(sets)
    pooled = torch.randn(2, 6)
    rows = torch.tensor([0, 0, 1])
    annotators = torch.tensor([0, 1, -1])
    found = head(pooled, rows, annotators)
    torch.testing.assert_close(found[:2], head(pooled))
    for k, share in ((0, 8 / 18), (1, 1 / 11)):
        hidden = torch.nn.functional.gelu(head.first(pooled[0] + share * head.vectors[k]))
        wanted = head.link(head.shared(hidden) + share * head.offsets[k])
        torch.testing.assert_close(found[2 + k], wanted)
    torch.testing.assert_close(found[4], found[1])  # nobody in particular


@pytest.mark.parametrize("sets", [False, True])
def test_annotators_start_at_their_own_mean_shrunk_by_labels(sets: bool) -> None:
    head = AnnotatorHead(6, link_of(2, sets=sets), PEOPLE).eval()
    targets = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3)
    labels = np.array([[8.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    head.set_prior(targets, labels)
    rows = torch.zeros(3, dtype=int)
    annotators = torch.arange(3)
    found = head.link.probabilities(head(torch.zeros(1, 6), rows, annotators)).detach()
    # Half of everybody's answers are the first class; ten of those are added to one's own.
    np.testing.assert_allclose(found[1, 0], (8 + 10 / 2) / 18, rtol=1e-5)
    np.testing.assert_allclose(found[2, 0], (0 + 10 / 2) / 11, rtol=1e-5)
    np.testing.assert_allclose(found[3], found[0])


# Losses


def test_losses_are_what_they_are_called() -> None:
    p = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    t = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    ce = row_losses("ce", p.log(), t, STEPS[:1])
    torch.testing.assert_close(ce, -torch.log(torch.tensor([0.9, 0.5])))
    md = row_losses("md", p.log(), t, STEPS[:1])
    torch.testing.assert_close(md, torch.tensor([0.2, 0.5]))


def test_the_ranked_probability_score_is_that_of_the_metrics() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 5)
    q = rng.dirichlet(np.ones(4), 5)
    places = (0.0, 1.0, 3.0, 3.5)
    steps = torch.tensor(np.diff(places))
    found = row_losses("rps", torch.tensor(p).log(), torch.tensor(q), steps)
    assert float(found.mean()) == pytest.approx(rps(p, q, places))
    both = row_losses("ce+rps", torch.tensor(p).log(), torch.tensor(q), steps)
    ce = row_losses("ce", torch.tensor(p).log(), torch.tensor(q), steps)
    torch.testing.assert_close(both, ce + found)


def test_the_loss_of_a_set_is_the_mean_over_its_labels() -> None:
    scores = torch.randn(5, 3)
    shares = torch.rand(5, 3)
    link = link_of(3, sets=True)
    found = link.losses("ce", link(scores), shares)
    each = torch.nn.functional.binary_cross_entropy_with_logits(scores, shares, reduction="none")
    torch.testing.assert_close(found, each.mean(dim=1))


def test_pairs_of_texts_are_found_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edokit.members.recipes._tokens._HIDDEN_SHARE", 0.0)
    people = SimpleNamespace(
        items=["a", "b", "c"],
        annotators=["ann", "new", "bob"],
        item_codes=np.array([2, 0, 2, 0]),
        annotator_codes=np.array([0, 1, 2, 0]),
        label_codes=np.array([0, 1, 1, 0]),
        label_probabilities=None,
    )
    pairs, labels = annotator_labels(people, ["bob", "ann"], 2)
    assert pairs.annotators.tolist() == [-1, 1, 1, 0]
    assert labels.argmax(axis=1).tolist() == [1, 0, 0, 1]
    assert pairs.rows.tolist() == [0, 0, 2, 2]
    targets = AnnotatorTargets(lambda epoch: np.full((3, 2), 0.5), people, 2, seed=0)
    batch = targets.batch(np.array([2, 1, 0]))
    assert batch["pair_rows"].tolist() == [0, 0, 2, 2]
    assert batch["pair_annotators"].tolist() == [0, 2, 1, 0]


def test_annotators_are_hidden_anew_and_those_of_an_item_weigh_one() -> None:
    n = 200
    people = SimpleNamespace(
        items=range(n),
        annotators=["ann", "bob"],
        item_codes=np.repeat(np.arange(n), 2),
        annotator_codes=np.tile([0, 1], n),
        label_codes=np.tile([0, 1], n),
        label_probabilities=None,
    )
    labels = AnnotatorTargets(lambda epoch: np.full((n, 2), 0.5), people, 2, seed=3)
    hidden = []
    for epoch in (0, 1, 0):
        labels.begin(epoch)
        batch = labels.batch(np.arange(n))
        hidden.append(batch["pair_annotators"] < 0)
        weights = np.bincount(batch["pair_rows"], batch["pair_weights"])
        np.testing.assert_allclose(weights, 1.0)
    assert 0.1 < hidden[0].mean() < 0.3
    assert (hidden[0] != hidden[1]).any()
    assert (hidden[0] == hidden[2]).all()


# Adversarial step


def test_the_adversarial_step_has_its_norm_and_is_taken_back() -> None:
    weight = torch.nn.Parameter(torch.randn(5, 3))
    before = weight.detach().clone()
    weight.grad = torch.randn(5, 3)
    with adversarial_step(weight, 0.7):
        step = weight.detach() - before
        assert float(step.norm()) == pytest.approx(0.7, rel=1e-5)
        torch.testing.assert_close(step / 0.7, weight.grad / weight.grad.norm())
    assert torch.equal(weight.detach(), before)


def test_embeddings_come_back_even_when_the_pass_fails() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 2))
    weight.grad = torch.ones(2, 2)
    with pytest.raises(ZeroDivisionError), adversarial_step(weight, 1.0):
        raise ZeroDivisionError
    assert torch.equal(weight.detach(), torch.ones(2, 2))


@pytest.mark.parametrize("gradient", [None, [0.0, 0.0], [float("inf"), 0.0], [float("nan"), 0.0]])
def test_without_a_usable_gradient_nothing_moves(gradient: list[float] | None) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = None if gradient is None else torch.tensor(gradient)
    with adversarial_step(weight, 1.0):
        assert torch.equal(weight.detach(), torch.ones(2))


def test_the_step_hurts(model: str, reader: Reader) -> None:
    torch.manual_seed(0)
    net = network(model)
    batch = tensors(reader.padded(reader(["nice day", "rude day"])))
    targets = torch.eye(2)

    def loss() -> torch.Tensor:
        return row_losses("ce", net(**batch), targets, STEPS[:1]).mean()

    clean = loss()
    clean.backward()
    with adversarial_step(net.backbone.get_input_embeddings().weight, 0.5):
        assert loss() > clean


# Learning rates


def test_each_layer_learns_slower_than_the_one_above(model: str) -> None:
    net = network(model)
    groups = parameter_groups(net, TransformerMember(2, learning_rate=1e-3, layer_decay=0.5), 0.01)
    rates = {
        name: group["lr"]
        for name, weight in net.named_parameters()
        for group in groups
        if any(weight is other for other in group["params"])
    }
    assert rates["head.shared.weight"] == pytest.approx(1e-3)
    assert rates["backbone.encoder.layer.1.output.dense.weight"] == pytest.approx(1e-3 / 2)
    assert rates["backbone.encoder.layer.0.output.dense.weight"] == pytest.approx(1e-3 / 4)
    assert rates["backbone.embeddings.word_embeddings.weight"] == pytest.approx(1e-3 / 8)
    assert len(rates) == len(list(net.parameters()))


def test_heads_and_annotators_have_learning_rates_of_their_own(model: str) -> None:
    head = AnnotatorHead(16, link_of(2), PEOPLE)
    net = MemberNetwork(load_backbone(model), "mean", head)
    rates = {"learning_rate": 1e-3, "head_learning_rate": 5e-3, "annotator_learning_rate": 0.1}
    options = TransformerMember(2, **rates)
    rate = {
        id(weight): (group["lr"], group["weight_decay"])
        for group in parameter_groups(net, options, 0.01)
        for weight in group["params"]
    }
    assert rate[id(head.vectors)] == rate[id(head.offsets)] == (0.1, 0.0)
    assert rate[id(head.first.weight)] == rate[id(head.shared.weight)] == (5e-3, 0.01)
    assert rate[id(net.backbone.get_input_embeddings().weight)] == (1e-3, 0.01)


def test_biases_and_norms_do_not_decay(model: str) -> None:
    net = network(model)
    groups = parameter_groups(net, TransformerMember(2, learning_rate=1e-3), 0.01)
    still = {id(w) for group in groups if group["weight_decay"] == 0.0 for w in group["params"]}
    for name, weight in net.named_parameters():
        assert (id(weight) in still) == (name.endswith("bias") or "LayerNorm" in name)


# Bare machines


def test_a_bare_machine_needs_neither_pandas_nor_pyarrow() -> None:
    # Training imports what is on a GPU machine anyway, and torch only when it trains.
    script = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'optuna', 'cyclopts', 'rich', 'altair', 'skops'):\n"
        "    sys.modules[name] = None\n"
        "import edokit.members.recipes.transformer\n"
        "assert 'torch' not in sys.modules\n"
        "import edokit.members.recipes._training\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# Options


def test_the_papers_settings_are_the_defaults() -> None:
    options = TransformerMember(2)
    assert (options.learning_rate, options.batch_size, options.eval_batch_size) == (2e-5, 16, 32)
    assert (options.epochs, options.patience, options.max_length) == (20, 3, 512)
    assert (options.count_warmup_steps(100_000), options.count_warmup_steps(1000)) == (500, 100)
    decays = [options.draw_weight_decay(seed) for seed in range(200)]
    assert 0.005 <= min(decays) < 0.006
    assert 0.014 < max(decays) <= 0.015
    assert options.draw_weight_decay(3) == options.draw_weight_decay(3)
    assert TransformerMember(2, weight_decay=0.1).draw_weight_decay(3) == 0.1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", "fast"),
        ("batch_size", 0),
        ("batch_size", 2.5),
        ("epochs", True),
        ("layer_decay", 1.1),
        ("adversarial", -1.0),
        ("weight_decay", 2.0),
        ("loss", "hinge"),
        ("pooling", "max"),
        ("n_classes", 1),
    ],
)
def test_options_that_make_no_sense_are_refused(option: str, value: object) -> None:
    code = "unknown-choice" if option in ("loss", "pooling") else "invalid-number"
    with raises_code(code, option):
        TransformerMember(**{"n_classes": 2, option: value})


def test_known_annotators_have_no_manhattan_loss() -> None:
    with raises_code("conflicting-options", "loss='md'"):
        TransformerMember(2, annotators=True, loss="md")
