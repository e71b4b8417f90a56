//! The front matter of charters and role files.

use super::super::front_matter::Several;
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

impl Matter {
    pub(super) fn fill(self, charter: &mut Charter) {
        charter.name = charter.name.take().or(self.name);
        charter.role = charter.role.take().or(self.description);
        charter.model = charter.model.take().or_else(|| {
            self.model
                .and_then(Several::list)
                .and_then(|list| list.into_iter().next())
                .and_then(|text| model_name(&text))
        });
        charter.tier = charter.tier.or(self.tier.as_deref().and_then(super::tier_name));
        charter.engine = charter.engine.take().or(self.engine.as_deref().and_then(super::engine_name));
        charter.tools = charter.tools.take().or(self.tools.and_then(Several::list));
    }
}
