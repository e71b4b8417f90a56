//! Numbers that were fitted on labelled messages of real teams, each team's with what the others' say, and what they
//! mean. They are the router's only fitted numbers.

use super::rank::FEATURES;

/// What each measure is worth, in the order of [`super::fields::Field`] and of the constants in `rank`: a conditional
/// logit over the agents of a team, drawn towards plausible values so that few messages cannot bend it far.
pub(super) const WEIGHTS: [f64; FEATURES] = [0.3, 0.22, 0.41, 0.4, 0.42, -0.2, 0.39, 0.8, 3.4, 1.3, 1.75, 0.6];

/// How sure a choice is: the logit's start, then for each point of lead over the next agent, of the areas' agreement
/// and of the words found.
pub(super) const CALIBRATION: [f64; 4] = [-1.65, 0.65, 0.9, 0.1];

/// From this confidence on the router answers: where it was right often enough on teams it was not fitted to.
pub(super) const SURE: f64 = 0.72;

/// What is left of a confidence when somebody was called by name who cannot be started.
pub(super) const IN_VAIN: f64 = 0.8;

/// A message of which nearly every word is in one agent's files, and far fewer in any other's, is surer by this much.
pub(super) const EXPLAINED: f64 = 1.5;
pub(super) const NEARLY_ALL: f64 = 0.75;
pub(super) const FAR_FEWER: f64 = 0.6;
