//! What a word may be in a question that squad understands.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

/// A set of kinds, one bit each.
pub(super) type Kinds = u16;

pub(super) const GREETING: Kinds = 1;
pub(super) const THANKS: Kinds = 1 << 1;
/// Those who may be spoken to.
pub(super) const ADDRESSED: Kinds = 1 << 2;
pub(super) const PLEASANT: Kinds = 1 << 3;
/// What a question may begin with and mean no more; and what it may end with.
pub(super) const OPENING: Kinds = 1 << 4;
pub(super) const CLOSING: Kinds = 1 << 5;
/// Words that carry a sentence and no topic.
pub(super) const PLAIN: Kinds = 1 << 6;
pub(super) const TEAM: Kinds = 1 << 7;
pub(super) const HAPPENING: Kinds = 1 << 8;
pub(super) const HAPPENING_TOO: Kinds = 1 << 9;
/// Days, and what else says when.
pub(super) const WHEN: Kinds = 1 << 10;
/// Verbs that ask who does something and say nothing of what.
pub(super) const HANDLES: Kinds = 1 << 11;
/// What a question may begin with beside the others.
const ASKING: Kinds = 1 << 12;

/// What the first word of a question or a greeting may be.
pub(super) const FIRST: Kinds =
    GREETING | THANKS | ADDRESSED | PLEASANT | OPENING | PLAIN | HAPPENING | HAPPENING_TOO | WHEN | ASKING;

/// Words with blanks between them.
const LISTS: [(Kinds, &str); 13] = [
    (
        GREETING,
        "hi hello hey hiya howdy greetings yo morning evening afternoon hallo hola bonjour salut ciao moin servus ola",
    ),
    (THANKS, "thanks thank thx ty cheers danke merci gracias obrigado grazie"),
    (ADDRESSED, "team squad all everyone everybody folks there guys you coordinator again"),
    (
        PLEASANT,
        "good great nice day to see how are is it going doing today things so much very well a lot for the your that \
         this was were help work job everything awesome perfect fine happy",
    ),
    (
        OPENING,
        "please can could would you tell show remind give me us quick question so and ok okay well just again now \
         right currently here today actually exactly do know",
    ),
    (CLOSING, "please again now right currently here today actually exactly just"),
    (
        PLAIN,
        "a an the this that these our my your we i you us it is are was were be been has have had do does did what \
         which who when where there any all of on in at to for about with by as so far already ever yet regarding \
         concerning list show and",
    ),
    (TEAM, "team squad agents agent members member roster people colleagues crew everyone"),
    (
        HAPPENING,
        "status happening happened happens going progress update updates news running working doing latest last \
         recent recently blocked blockers blocking stuck",
    ),
    (
        HAPPENING_TOO,
        "how go went up state run new anything anyone someone everyone everybody everything things work team squad \
         done stand sprint",
    ),
    (
        WHEN,
        "yesterday today week weekend weekends month morning afternoon night since monday tuesday wednesday thursday \
         friday saturday sunday moment past still open pending current new",
    ),
    (HANDLES, "handles handle owns own does do takes take works work maintains covers knows gets deals"),
    (ASKING, "why introduce describe name runs ran"),
];

static WORDS: LazyLock<HashMap<&str, Kinds, FixedState>> = LazyLock::new(|| {
    let mut words = HashMap::with_capacity_and_hasher(512, FixedState::default());
    for (kind, list) in LISTS {
        list.split(' ').for_each(|word| *words.entry(word).or_insert(0) |= kind);
    }
    words
});

pub(super) fn is_a(kinds: Kinds, word: &str) -> bool {
    WORDS.get(word).is_some_and(|of| of & kinds != 0)
}
