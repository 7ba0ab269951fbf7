"""What the invented posts are made of: topics, targets, verdicts by heat, marks of irony."""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """What happens in a topic, and whom or what a post about it can be aimed at."""

    events: tuple[str, ...]
    things: tuple[str, ...]
    persons: tuple[str, ...]
    people: tuple[str, ...]


TOPICS: dict[str, Topic] = {
    "football": Topic(
        events=(
            "{team} drew at home to {team2}",
            "{team} conceded in minute {number}",
            "we queued for {count} for a match ticket",
            "the match against {team2} went to penalties",
            "{team} changed the kit again",
            "watched {team} train in the rain",
            "the derby with {team2} is on {weekday}",
            "a corner in minute {number} decided it for {team}",
            "half-time lasted {count} and {team} looked tired",
            "{team2} rested their best striker",
        ),
        things=("the pitch", "the second half", "that offside rule", "the new kit", "the stadium"),
        persons=("the referee", "that striker", "the goalkeeper", "the pundit", "the coach"),
        people=("the away fans", "the linesmen", "season-ticket holders", "the home supporters"),
    ),
    "weather": Topic(
        events=(
            "it rained for {count} in {place}",
            "the forecast said sun until {weekday}",
            "there was fog over {place} at sunrise",
            "the wind took {number} tiles off the roof",
            "we got {count} of hail in {place}",
            "the heatwave reached {place}",
            "the umbrella lasted {count}",
            "snow closed the road to {place}",
            "clouds over {place} since {weekday}",
            "the thermometer in {place} said {number}",
        ),
        things=("this drizzle", "the forecast", "that cold front", "the weather app", "this heat"),
        persons=("the forecaster", "the weather presenter", "that gritter driver"),
        people=("the sun worshippers", "the weather experts", "people who love winter"),
    ),
    "transport": Topic(
        events=(
            "the {number} bus came {count} late",
            "my train to {place} stopped for {count}",
            "roadworks near {place} until {weekday}",
            "bikes are allowed on the {number} tram now",
            "the ticket machine in {place} ate my card",
            "{number} people stood in one carriage to {place}",
            "they moved the stop on {street}",
            "the lift in {place} station is back",
            "a taxi blocked {street} for {count}",
            "the ferry to {place} runs again from {weekday}",
        ),
        things=("the timetable", "this tram line", "the ticket app", "the new platform"),
        persons=("the bus driver", "that conductor", "the parking warden", "that taxi driver"),
        people=("cyclists", "the commuters", "car drivers", "the ticket inspectors"),
    ),
    "food": Topic(
        events=(
            "the cafe on {street} serves {dish} now",
            "waited {count} for {dish}",
            "tried {dish} in {place}",
            "the market in {place} sold out of {dish}",
            "{dish} for {number} people on {weekday}",
            "they put pineapple in {dish}",
            "my {dish} arrived cold after {count}",
            "the bakery on {street} closes on {weekday}",
            "someone brought {dish} to the picnic in {place}",
            "{dish} costs {number} coins on {street}",
        ),
        things=("the menu", "that sauce", "the coffee", "this recipe", "the portion"),
        persons=("the chef", "that waiter", "the food critic", "the baker", "the landlady"),
        people=("the regulars", "picky eaters", "the kitchen staff", "food bloggers"),
    ),
    "neighbours": Topic(
        events=(
            "drilling on {street} for {count}",
            "a party at number {number} until dawn",
            "the hedge on {street} grew over the fence",
            "somebody parked across number {number}",
            "the bins on {street} were left out until {weekday}",
            "the dog at number {number} barked for {count}",
            "a parcel for number {number} ended up here",
            "there is a barbecue on {street} this {weekday}",
            "the stairwell was painted on {weekday}",
            "the residents of {street} met for {count}",
        ),
        things=("that fence", "the stairwell", "this street", "the shared garden"),
        persons=("the man upstairs", "the caretaker", "that landlord", "the woman next door"),
        people=("the neighbours", "the new tenants", "dog owners", "the students downstairs"),
    ),
    "music": Topic(
        events=(
            "the band played for {count} in {place}",
            "the new album has {number} songs",
            "the concert in {place} moved to {weekday}",
            "the choir on {street} rehearsed for {count}",
            "they covered an old hit in {place}",
            "the speakers failed after {count}",
            "vinyl night on {street} this {weekday}",
            "a tribute act toured {place}",
            "the radio played the same song {number} times",
            "the busker on {street} learned a new tune",
        ),
        things=("the encore", "that chorus", "the sound mix", "the new single", "this playlist"),
        persons=("the singer", "that drummer", "the DJ", "the sound engineer"),
        people=("the front-row fans", "the critics", "the backing band", "jazz lovers"),
    ),
    "office": Topic(
        events=(
            "the meeting took {count}",
            "the printer on floor {number} is broken",
            "we moved desks on {weekday}",
            "a reply-all thread with {number} mails",
            "the deadline moved to {weekday}",
            "the team building trip goes to {place}",
            "the canteen tried {dish} on {weekday}",
            "the call with {place} dropped after {count}",
            "they ordered {number} chairs for the wrong floor",
            "the login page was down for {count}",
        ),
        things=("the agenda", "that spreadsheet", "the coffee machine", "the open-plan floor"),
        persons=("the manager", "that consultant", "the intern", "the receptionist"),
        people=("the sales people", "the accountants", "the night shift", "the IT people"),
    ),
    "television": Topic(
        events=(
            "the finale ran {count} over",
            "season {number} is set in {place}",
            "the quiz on {weekday} had a trick question",
            "they cancelled the show about {place}",
            "watched {number} episodes since {weekday}",
            "the remake was filmed on {street}",
            "the cooking show made {dish}",
            "adverts for {count} before the news",
            "the documentary about {place} is out",
            "the subtitles were {count} behind",
        ),
        things=("that ending", "the plot", "this remake", "the theme tune", "the pilot"),
        persons=("the host", "that actor", "the scriptwriter", "the newsreader"),
        people=("the producers", "the contestants", "superfans", "the panel"),
    ),
}
"""Topic name -> what posts about it are made of."""

READERS: tuple[str, ...] = ("you", "you lot", "all of you", "people like you", "you and your mates")

FILLERS: dict[str, tuple[str, ...]] = {
    "team": ("United", "Rovers", "the Wanderers", "City", "Athletic", "the Swifts", "Albion"),
    "team2": ("Harbour Town", "Northgate", "the Larks", "Millbrook", "Eastvale", "Old Quay"),
    "number": ("3", "7", "9", "12", "14", "21", "28", "33", "46", "58", "71", "90"),
    "count": ("ten minutes", "an hour", "ages", "half the day", "forty minutes", "two hours"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "place": ("Ashford Bay", "Kelm", "the old town", "Dunmere", "Port Alder", "the valley", "Wix"),
    "street": (
        "Mill Lane",
        "Station Road",
        "Elm Street",
        "the high street",
        "Quay Row",
        "Hill Rise",
    ),
    "dish": ("soup", "noodles", "lentil pie", "fish cakes", "pancakes", "curry", "apple tart"),
}
"""What fills the gaps of events."""

OPENINGS: tuple[str, ...] = (
    "so", "well", "update:", "right", "this morning", "last night", "just now", "ok", "hm", "news:",
    "for the record", "on the way home", "as every year", "apparently", "by the way", "finally",
)  # fmt: skip

CLOSINGS: tuple[str, ...] = (
    "anyway, tea", "that is all", "more later", "any thoughts?", "back to work", "photos to follow",
    "just saying", "see you there", "end of thread", "long day", "had to share",
    "who else was there?", "battery is nearly gone", "my sister agrees",
    "typing this on the stairs", "good night",
)  # fmt: skip

# Five heats, from praise to hostility. {is}, {was}, {does} and {s} agree with {who}.
VERDICTS: tuple[tuple[str, ...], ...] = (
    (
        "{who} {was} {adverb} {good}",
        "credit to {who}, {adverb} {good}",
        "hats off to {who}",
        "I have a soft spot for {who}",
        "{who} made my day",
        "{good} work, thanks to {who}",
        "three cheers for {who}",
    ),
    (
        "{who} {was} {plain}",
        "nothing special about {who}",
        "no strong feelings about {who}",
        "{who} again, {plain} as usual",
        "some people mention {who}, I find it all {plain}",
        "there is talk about {who}",
        "{plain} I suppose, as far as {who} go{es}",
    ),
    (
        "{who} could do better",
        "{who} {was} {adverb} {poor}",
        "I expected more from {who}",
        "{who} need{s} to try harder",
        "a bit fed up with {who}",
        "not impressed by {who}, {poor} as ever",
        "{poor} and {poor2}, that sums up {who}",
    ),
    (
        "{who} {is} {adverb} {bad}",
        "I am sick of {who}",
        "{who} should be ashamed",
        "how {does} {who} get away with it",
        "what is wrong with {who}",
        "{who} ruined everything, {adverb} {bad}",
        "{who} never learn{s}, {bad} as always",
    ),
    (
        "{adverb} {who} {is} the worst, {order}",
        "nobody wants {who} here, {order}",
        "{bad} and {bad2}, that is {who}, {order}",
        "I cannot stand {who}, {order}",
        "get {who} out of my sight",
        "no one would miss {who}, {order}",
        "{who} deserve{s} to be booed, {bad} to the core",
    ),
)

WORDS: dict[str, tuple[str, ...]] = {
    "adverb": (
        "really", "honestly", "simply", "truly", "frankly", "so", "absolutely", "quite",
        "seriously", "rather", "genuinely",
    ),
    "good": (
        "good", "lovely", "great", "decent", "superb", "solid", "charming", "splendid", "wonderful",
        "delightful", "excellent", "first-rate", "terrific", "heart-warming",
    ),
    "plain": (
        "fine", "okay", "average", "all right", "so-so", "ordinary", "passable", "acceptable",
        "middling", "unremarkable",
    ),
    "poor": (
        "disappointing", "slow", "sloppy", "careless", "dull", "clumsy", "lazy", "tiresome",
        "muddled", "half-hearted", "underwhelming", "stale",
    ),
    "bad": (
        "useless", "awful", "hopeless", "ridiculous", "embarrassing", "rude", "selfish", "arrogant",
        "shameful", "clueless", "dreadful", "insufferable", "pompous", "spiteful",
    ),
    "order": (
        "go home", "pack it in", "give up", "get lost", "stay away", "take a hike",
        "resign already", "leave us alone", "never come back", "sit down", "find another hobby",
        "do us all a favour",
    ),
}  # fmt: skip
"""What fills the gaps of verdicts; the first words of each list are the common ones."""

IRONY_MARKS: tuple[str, ...] = (
    "what a surprise", "/s", "slow clap", "just brilliant", "of course", "how nice",
    "truly inspiring", "because why not", "genius", "bravo", "living the dream",
    "who could have guessed",
)  # fmt: skip
