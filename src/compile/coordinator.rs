//! The coordinator's session: it routes messages when the router abstains, answers messages that need no agent, and
//! writes the final answer from several agents' reports.
//!
//! ```text
//! prompt    instructions, the team's charter for it, routing prose, project, roster      in the hash
//! context   routing rules, module owners, titles of decisions      the relevant ones, if not all fit
//! request   candidates with evidence, and the message
//! ```

use super::compiled::{Compiled, ReceiptData};
use super::coordinator_context::CoordinatorContext;
use super::{Compiler, compaction_threshold, compiled_hash, model_choice, prompt};
use crate::model::{ContextItem, SessionSpec, Slug, Tier, ToolChoice, without_hidden};

impl<'a> Compiler<'a> {
    /// For routing and summaries, which need no tools.
    pub(crate) fn coordinator(&'a self) -> Compiled<'a> {
        self.coordinator_with(ToolChoice::Nothing)
    }

    /// For its own answers, which may need to read the project.
    pub(crate) fn answering_coordinator(&'a self) -> Compiled<'a> {
        self.coordinator_with(ToolChoice::ReadOnly)
    }

    fn coordinator_with(&'a self, tools: ToolChoice) -> Compiled<'a> {
        let settings = self.sources.settings;
        let parts = CoordinatorContext::new(self);
        let fixed = [prompt::COORDINATOR, &parts.charter.text, &parts.routing.text, &parts.project.text];
        let context = [&parts.rules, &parts.modules, &parts.decisions].map(|lines| lines.text.as_str());
        let engine = settings.engine_of(&[Slug::COORDINATOR.to_owned()], None);
        let mut spec = SessionSpec {
            agent: Slug::coordinator(),
            name: "Coordinator".to_owned(),
            role: "Coordinator".to_owned(),
            tier: Tier::Direct,
            prompt: without_hidden([&fixed.concat(), &parts.roster].map(String::as_str).concat()),
            team: String::new(),
            context: without_hidden(context.concat()),
            items: context
                .into_iter()
                .filter(|text| !text.is_empty())
                .map(|text| ContextItem::new("", without_hidden(text.to_owned())))
                .collect(),
            model: model_choice::coordinator(settings, self.offer_of(engine.as_deref())),
            engine,
            tools,
            denied_tools: Vec::new(),
            compaction_threshold: compaction_threshold(settings, Tier::Standard),
            effort: None,
            compiled_hash: String::new(),
        };
        spec.compiled_hash = compiled_hash(&spec, "");
        Compiled { spec, compiler: self, receipt_data: ReceiptData::Coordinator(Box::new(parts)) }
    }
}
