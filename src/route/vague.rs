//! Messages that name a mood and no work: "it feels off", "make it better", "sort this out".

/// A longer message says what it is about, however it complains.
const WORDS: usize = 30;

/// Whether a message asks for nothing in particular.
pub(super) fn is_vague(message: &str) -> bool {
    if message.split_whitespace().nth(WORDS).is_some() {
        return false;
    }
    let message = message.to_lowercase();
    let mut words = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if phrases(word).iter().any(|rest| goes_on(words.clone(), rest)) {
            return true;
        }
    }
    false
}

/// What follows a word in such phrases, word by word: any of several, or none where one is empty.
fn phrases(word: &str) -> &'static [&'static [&'static [&'static str]]] {
    const MANNERS: &[&str] = &["off", "odd", "weird", "strange", "bad", "boring", "ugly", "broken", "messy"];
    const IT: &[&str] = &["it", "this", "that"];
    const THEM: &[&str] = &["it", "this", "that", "them", "everything"];
    match word {
        "feel" | "feels" => &[&[&["off", "wrong", "odd", "weird", "slow", "strange", "clunky", "old"]]],
        "look" | "looks" | "is" | "are" | "seem" | "seems" => &[&[MANNERS], &[&["a"], &["mess"]]],
        "sort" => &[&[THEM, &["out"]]],
        "do" => &[&[&["something"]]],
        "somehow" => &[&[]],
        "something" => &[&[&["is", "s"]]],
        "act" | "acts" | "acting" => &[&[&["up", "weird"]]],
        "not" => &[&[&["quite", ""], &["right"]]],
        "make" => &[&[THEM, &["better", "nicer", "faster", "more"]]],
        "clean" => &[&[&["it", "this", "that", ""], &["up"]]],
        "polish" | "improve" | "tidy" => &[&[IT]],
        "could" | "should" => &[&[&["be"], &["better", "nicer"]]],
        "need" | "needs" => &[&[&["some", ""], &["work", "love"]]],
        "like" => &[&[&["last"], &["time"]], &[&["before", "yesterday"]]],
        "same" => &[&[&["as"], &["last"], &["time"]], &[&["as"], &["before", "yesterday"]]],
        "this" | "that" => &[&[&["thing"]]],
        "the" => &[&[&["remaining", ""], &["stuff"]]],
        "as" => &[&[&["discussed"]]],
        "mach" | "macht" => &[&[&["es", "das"], &["besser", "schöner"]]],
        "mejora" | "arregla" => &[&[&["esto"]]],
        "améliore" | "améliorer" | "améliorez" => &[&[&["ça", "cela"]]],
        _ => &[],
    }
}

fn goes_on<'w>(words: impl Iterator<Item = &'w str>, rest: &[&[&str]]) -> bool {
    let mut words = words.peekable();
    rest.iter().all(|any| words.next_if(|word| any.contains(word)).is_some() || any.contains(&""))
}

#[cfg(test)]
mod tests {
    use super::is_vague;

    #[test]
    fn moods_are_vague_and_work_is_not() {
        for vague in ["The whole thing feels off lately", "Make it better", "sort this out please", "mach es besser"] {
            assert!(is_vague(vague), "{vague}");
        }
        for plain in ["Clean the build folder", "The button is red", "Sort the rows by date", "Make the cache faster"] {
            assert!(!is_vague(plain), "{plain}");
        }
        assert!(!is_vague(&format!("It feels off: {}", "a word ".repeat(30))));
    }
}
