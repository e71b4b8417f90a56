//! A compiled session, and the account of how it came about.

use super::budget::{Budget, tokens};
use super::history::Past;
use super::material::{LARGEST, Material};
use super::receipt::{Input, InputKind, Receipt, Totals, always, hash};
use super::standing::{ceremony_line, facilitated, has_text};
use super::{Compiler, decisions, history, prompt, sections, skills};
use crate::model::{Member, SessionSpec};

/// A session, and how it came about.
pub(crate) struct Compiled<'a> {
    pub(crate) spec: SessionSpec,
    pub(super) compiler: &'a Compiler<'a>,
    pub(super) making: Making<'a>,
}

pub(super) enum Making<'a> {
    Agent { member: &'a Member, past: Past<'a>, budget: Budget, told: Box<Selected<'a>> },
    Coordinator(Box<Material<'a>>),
}

/// What an agent is told beside what is fixed, in the order of the prompt.
pub(super) struct Selected<'a> {
    pub(super) project: sections::Selected<'a>,
    pub(super) skills: skills::Selected,
    pub(super) notes: history::Selected,
    pub(super) decisions: decisions::Selected,
    pub(super) history: history::Selected,
}

impl Compiled<'_> {
    pub(crate) fn tokens(&self) -> usize {
        tokens(&self.spec.prompt) + tokens(&self.spec.told())
    }

    /// Every input with its hash, its size, and why it went in or stayed out.
    pub(crate) fn receipt(&self) -> Receipt {
        let mut inputs = Vec::new();
        let (budget, [skills, notes, decisions, history]) = match &self.making {
            Making::Agent { member, past, budget, told } => {
                self.fixed_inputs(member, &told.project, &mut inputs);
                self.compiler.skills.receipt(&told.skills, budget.skills, &mut inputs);
                self.compiler.notes.receipt(&told.notes, budget.notes, &mut inputs);
                self.compiler.decisions.receipt(&told.decisions, budget, &mut inputs);
                past.receipt(&told.history, budget.history, &mut inputs);
                let texts = [&told.skills.text, &told.notes.text, &told.decisions.text, &told.history.text];
                (*budget, texts.map(String::as_str))
            }
            Making::Coordinator(material) => {
                material.receipt(&mut inputs);
                let decisions = material.decisions.limit.div_ceil(4);
                let budget = Budget { total: LARGEST.div_ceil(4), skills: 0, notes: 0, decisions, history: 0 };
                (budget, ["", "", material.decisions.text.as_str(), ""])
            }
        };
        let spec = &self.spec;
        Receipt {
            agent: spec.agent.clone(),
            tier: spec.tier,
            model: spec.model.clone(),
            tools: spec.tools.clone(),
            compiled_hash: spec.compiled_hash.clone(),
            knowledge_hash: hash(&[skills, notes]),
            decisions_hash: hash(&[decisions]),
            history_hash: hash(&[history]),
            task_hash: self.compiler.task.hash.clone(),
            budget,
            tokens: Totals {
                total: self.tokens(),
                prompt: tokens(&spec.prompt),
                context: tokens(&spec.told()),
                knowledge: tokens(skills) + tokens(notes),
                decisions: tokens(decisions),
                history: tokens(history),
            },
            inputs,
        }
    }

    fn fixed_inputs(&self, member: &Member, project: &sections::Selected<'_>, inputs: &mut Vec<Input>) {
        let team = self.compiler.sources.team;
        let has_charter = has_text(team.charters.get(&member.slug));
        let charter = member.charter.clone().filter(|_| has_charter);
        inputs.push(always(
            charter.map_or_else(|| "squad".to_owned(), |file| format!("{file}:1")),
            InputKind::Charter,
            &self.spec.prompt,
            if has_charter { "the agent's own prompt" } else { "there is no charter; squad says who the agent is" },
        ));
        inputs.push(always(
            "squad".to_owned(),
            InputKind::Instructions,
            prompt::TEAMWORK,
            "how to work here; every agent is told",
        ));
        project.receipt(inputs);
        let roster = &self.compiler.roster;
        inputs.push(always(member.source.to_string(), InputKind::Roster, roster, "the agents work can be given to"));
        for ceremony in facilitated(team, member) {
            let line = ceremony_line(ceremony);
            let input = always(ceremony.source.to_string(), InputKind::Ceremony, &line, "the agent facilitates it");
            inputs.push(Input { title: ceremony.name.clone(), ..input });
        }
    }
}
