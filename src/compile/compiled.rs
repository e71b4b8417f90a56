//! A compiled session and its receipt.

use super::budget::{Budget, tokens};
use super::coordinator_context::{CoordinatorContext, LARGEST};
use super::fixed_parts::{ceremony_line, facilitated, has_text};
use super::history::RankedNotes;
use super::receipt::{Input, InputKind, Receipt, Totals, always, hash};
use super::{Compiler, charter, choice, knowledge, prompt, sections};
use crate::model::{Member, SessionSpec};

/// A compiled session with the data for its receipt.
pub(crate) struct Compiled<'a> {
    pub(crate) spec: SessionSpec,
    pub(super) compiler: &'a Compiler<'a>,
    pub(super) receipt_data: ReceiptData<'a>,
}

pub(super) enum ReceiptData<'a> {
    Agent { member: &'a Member, past: RankedNotes<'a>, budget: Budget, selected: Box<Selected<'a>> },
    Coordinator(Box<CoordinatorContext<'a>>),
}

/// The selected parts of an agent's context, in the order of the prompt.
pub(super) struct Selected<'a> {
    pub(super) charter: charter::Selected,
    pub(super) project: sections::Selected<'a>,
    pub(super) skills: choice::Selected,
    pub(super) notes: choice::Selected,
    pub(super) knowledge: choice::Selected,
    pub(super) decisions: choice::Selected,
    pub(super) history: choice::Selected,
}

impl Compiled<'_> {
    pub(crate) fn tokens(&self) -> usize {
        tokens(&self.spec.prompt) + tokens(&self.spec.full_context())
    }

    /// All inputs with hash and size, and why each was included or left out.
    pub(crate) fn receipt(&self) -> Receipt {
        let mut inputs = Vec::new();
        let (budget, [skills, notes, knowledge, decisions, history]) = match &self.receipt_data {
            ReceiptData::Agent { member, past, budget, selected } => {
                self.fixed_inputs(member, selected, &mut inputs);
                self.compiler.skills.receipt(&selected.skills, budget.skills, &mut inputs);
                self.compiler.notes.receipt(&selected.notes, budget.notes, &mut inputs);
                let notes = self.compiler.sources.knowledge;
                knowledge::receipt(notes, &selected.knowledge, budget.knowledge, &mut inputs);
                self.compiler.decisions.receipt(&selected.decisions, budget, &mut inputs);
                past.receipt(&selected.history, budget.history, &mut inputs);
                let texts = [
                    &selected.skills.text,
                    &selected.notes.text,
                    &selected.knowledge.text,
                    &selected.decisions.text,
                    &selected.history.text,
                ];
                (*budget, texts.map(String::as_str))
            }
            ReceiptData::Coordinator(parts) => {
                parts.receipt(&mut inputs);
                let decisions = parts.decisions.limit.div_ceil(4);
                let total = LARGEST.div_ceil(4);
                let budget = Budget { total, skills: 0, notes: 0, knowledge: 0, decisions, history: 0 };
                (budget, ["", "", "", parts.decisions.text.as_str(), ""])
            }
        };
        let spec = &self.spec;
        let known: Vec<&str> = [skills, notes].into_iter().chain(Some(knowledge).filter(|it| !it.is_empty())).collect();
        Receipt {
            agent: spec.agent.clone(),
            tier: spec.tier,
            model: spec.model.clone(),
            tools: spec.tools.clone(),
            compiled_hash: spec.compiled_hash.clone(),
            knowledge_hash: hash(&known),
            decisions_hash: hash(&[decisions]),
            history_hash: hash(&[history]),
            task_hash: self.compiler.task.hash.clone(),
            budget,
            tokens: Totals {
                total: self.tokens(),
                prompt: tokens(&spec.prompt),
                context: tokens(&spec.full_context()),
                knowledge: known.iter().map(|text| tokens(text)).sum(),
                decisions: tokens(decisions),
                history: tokens(history),
            },
            inputs,
        }
    }

    fn fixed_inputs(&self, member: &Member, selected: &Selected<'_>, inputs: &mut Vec<Input>) {
        let team = self.compiler.sources.team;
        let has_charter = has_text(team.charters.get(&member.slug));
        let charter = member.charter.clone().filter(|_| has_charter);
        let whole = always(
            charter.map_or_else(|| "squad".to_owned(), |file| format!("{file}:1")),
            InputKind::Charter,
            &self.spec.prompt,
            if has_charter { "the agent's own prompt" } else { "there is no charter; squad introduces the agent" },
        );
        selected.charter.receipt(whole, inputs);
        inputs.push(always(
            "squad".to_owned(),
            InputKind::Instructions,
            prompt::TEAMWORK,
            "working rules for every agent",
        ));
        selected.project.receipt(inputs);
        let roster = &self.compiler.roster;
        inputs.push(always(member.source.to_string(), InputKind::Roster, roster, "the agents who can be given work"));
        for ceremony in facilitated(team, member) {
            let line = ceremony_line(ceremony);
            let input = always(ceremony.source.to_string(), InputKind::Ceremony, &line, "the agent facilitates it");
            inputs.push(Input { title: ceremony.name.clone(), ..input });
        }
    }
}
