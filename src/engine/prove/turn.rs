//! What the model of a proof does in a turn. It stands in the prompt, so that the model needs no memory.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::to_json;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn(pub(crate) Vec<Deed>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Deed {
    /// Writes a text into a file.
    Write(String, String),
    /// Runs a command line.
    Run(String),
    /// Calls one of squad's tools.
    Tool(String, Value),
    /// Has a sub-agent do it.
    Delegate(Turn),
    /// Ends the turn with a text, in which an engine without a model repeats a message that it was sent meanwhile.
    Hear,
    /// Ends the turn with a text.
    Say,
}

const MARK: &str = "SQUAD-PROOF ";

impl Turn {
    /// One line.
    pub(super) fn prompt(&self) -> String {
        format!("{MARK}{}", to_json(self).unwrap_or_default())
    }

    /// The turn of a prompt, around which an engine may have written more.
    pub(super) fn of_prompt(text: &str) -> Option<Self> {
        let rest = text.rsplit_once(MARK)?.1;
        serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_found_in_what_an_engine_makes_of_its_prompt() {
        let inner = Turn(vec![Deed::Write("a b".into(), "\"c\"\n".into()), Deed::Say]);
        for turn in [inner.clone(), Turn(vec![Deed::Run("ls".into()), Deed::Say])] {
            let text = format!("<user>\n{}\n</user> goes on", turn.prompt());
            assert_eq!(Turn::of_prompt(&text), Some(turn));
        }
        assert_eq!(Turn::of_prompt("SQUAD-PROOF nonsense"), None);
    }
}
