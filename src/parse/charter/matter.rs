//! The front matter of charters and role files.

use super::super::words::comma_list;
use super::model_name;
use crate::model::Charter;

#[derive(Default, serde::Deserialize)]
pub(super) struct Matter {
    name: Option<String>,
    description: Option<String>,
    model: Option<Several>,
    tools: Option<Several>,
    tier: Option<String>,
    engine: Option<String>,
}

/// A list, or one text with commas.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Several {
    List(Vec<String>),
    Text(String),
}

impl Several {
    /// An empty text means unset; an empty list means none.
    fn list(self) -> Option<Vec<String>> {
        match self {
            Self::List(list) => Some(list),
            Self::Text(text) if text.trim().trim_matches(['\'', '"']) == "*" => Some(vec!["*".to_owned()]),
            Self::Text(text) => Some(comma_list(&text)).filter(|list| !list.is_empty()),
        }
    }

    fn first(self) -> Option<String> {
        match self {
            Self::List(list) => list.into_iter().next(),
            Self::Text(text) => Some(text),
        }
    }
}

impl Matter {
    pub(super) fn fill(self, charter: &mut Charter) {
        charter.name = charter.name.take().or(self.name);
        charter.role = charter.role.take().or(self.description);
        charter.model =
            charter.model.take().or_else(|| self.model.and_then(Several::first).and_then(|text| model_name(&text)));
        charter.tier = charter.tier.or(self.tier.as_deref().and_then(super::tier_name));
        charter.engine = charter.engine.take().or(self.engine.as_deref().and_then(super::engine_name));
        charter.tools = charter.tools.take().or(self.tools.and_then(Several::list));
    }
}
