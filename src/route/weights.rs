//! Numbers that were fitted on labelled messages of real teams, each team's with what the others' say, and what they
//! mean. They are the router's only fitted numbers.

use super::fields::Field;

/// What is measured of a message and an agent: its fields, and how well their areas agree.
pub(super) const FEATURES: usize = Field::COUNT + 11;

/// What each measure is worth, in the order of [`super::fields::Field`] and of the constants in `measure`: a conditional
/// logit over the agents of a team, drawn towards plausible values so that few messages cannot bend it far.
pub(super) const WEIGHTS: [f64; FEATURES] =
    [0.1, 0.55, 0.1, 0.17, 0.29, -0.1, 0.43, 0.8, 2.9, 1.5, 0.85, 1.0, 1.1, 1.4, 1.15, 0.45, 1.0, -0.32, -0.16];

/// How sure a choice is: a logit's start, what a point of lead over the next agent adds, and what the logarithm of how
/// much was said adds, and what a question for a fact takes away: a look into files may answer it. Fitted on the same messages and on ones that should be left to the coordinator. The areas'
/// agreement, the words found, and whether both choose the same agent were tried beside them and told nothing more.
pub(super) const CALIBRATION: [f64; 4] = [-2.0, 1.15, 0.85, -0.6];

/// From this confidence on the router answers: where it was right often enough on teams it was not fitted to.
pub(super) const SURE: f64 = 0.79;

/// What is left of a confidence when somebody was called by name who cannot be started.
pub(super) const IN_VAIN: f64 = 0.8;

/// A message of which nearly every word is in one agent's past work, and far fewer in any other's, is surer by this
/// much.
pub(super) const EXPLAINED: f64 = 1.5;
pub(super) const NEARLY_ALL: f64 = 0.75;
pub(super) const FAR_FEWER: f64 = 0.6;
