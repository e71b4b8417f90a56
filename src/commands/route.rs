use super::{Context, Ended, text_or_input};
use crate::model::{Plan, PlanKind, list, printable};
use crate::ops::Project;
use crate::route::{Request, Router, Wishes};
use crate::settings::Layer;
use crate::ui::Ui;

/// Show who would work on a message, and why
///
/// Nobody is started, and no model is asked: routing is decided in code, and says what it went by.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  squad route \"Fix the login form\"
  squad route --json \"Fix the login form\" | jq .agents")]
pub(super) struct Args {
    /// What is to be done; `-` reads it from standard input
    message: String,
}

impl Args {
    pub(super) fn run(self, context: &mut Context<'_>) -> Ended {
        let project = Project::open(context.env, &context.directory, Layer::default())?;
        context.ui.problems(&project.problems);
        project.insist_on_sound()?;
        let message = text_or_input(&context.ui, &self.message)?;
        let plan = Router::new(&project.team, &[]).plan(&Request::new(&message), &Wishes::default());
        if context.ui.json() {
            context.ui.value(&plan);
        } else {
            show(&mut context.ui, &plan);
        }
        Ok(0)
    }
}

fn show(ui: &mut Ui, plan: &Plan) {
    ui.data(&match plan.kind {
        PlanKind::Agents => format!("{} (tier {}, confidence {:.2})", list(&plan.agents), plan.tier, plan.confidence),
        PlanKind::Direct => "Nobody is started; the coordinator answers.".to_owned(),
        PlanKind::Abstain => "Routing is not sure; the coordinator would choose.".to_owned(),
    });
    if let Some(reviewer) = &plan.reviewer {
        ui.data(&format!("Then {reviewer} reviews."));
    }
    for evidence in &plan.evidence {
        let line = format!("  {:<12} {:>5.2}  {} ({})", evidence.agent, evidence.weight, evidence.why, evidence.source);
        ui.data(&printable(&line));
    }
}
