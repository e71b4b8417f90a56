//! The coordinator's session: it chooses where the router abstains, answers what needs no agent, and writes the final
//! answer of several agents' work.
//!
//! ```text
//! prompt    what it is for, the team's charter for it, how the team routes, the project, the roster   in the hash
//! context   who does what, who owns which files, decisions by their titles      those about the task, if not all fit
//! request   the candidates with what speaks for them, and the message
//! ```

use super::compiled::{Compiled, Making};
use super::material::Material;
use super::{Compiler, compaction_threshold, compiled_hash, model_choice, prompt};
use crate::model::{SessionSpec, Slug, Tier, ToolChoice, without_hidden};

impl<'a> Compiler<'a> {
    /// To choose, or to sum up reports, it needs what it is told and no tool.
    pub(crate) fn coordinator(&'a self) -> Compiled<'a> {
        self.coordinator_with(ToolChoice::Nothing)
    }

    /// To answer by itself, it may read the project.
    pub(crate) fn answering_coordinator(&'a self) -> Compiled<'a> {
        self.coordinator_with(ToolChoice::ReadOnly)
    }

    fn coordinator_with(&'a self, tools: ToolChoice) -> Compiled<'a> {
        let settings = self.sources.settings;
        let material = Material::new(self);
        let fixed = [prompt::COORDINATOR, &material.charter.text, &material.routing.text, &material.project.text];
        let context = [&material.rules, &material.modules, &material.decisions].map(|lines| lines.text.as_str());
        let mut spec = SessionSpec {
            agent: Slug::coordinator(),
            name: "Coordinator".to_owned(),
            role: "Coordinator".to_owned(),
            tier: Tier::Direct,
            prompt: without_hidden([&fixed.concat(), &material.roster].map(String::as_str).concat()),
            team: String::new(),
            context: without_hidden(context.concat()),
            model: model_choice::coordinator(settings, &self.offer),
            engine: settings.engine_of(&[Slug::COORDINATOR.to_owned()], None),
            tools,
            compaction_threshold: compaction_threshold(settings, Tier::Standard),
            effort: None,
            compiled_hash: String::new(),
        };
        spec.compiled_hash = compiled_hash(&spec, "");
        Compiled { spec, compiler: self, making: Making::Coordinator(Box::new(material)) }
    }
}
