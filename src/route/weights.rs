//! The router's fitted numbers, from labelled messages of real teams, cross-validated by team.

use super::fields::Field;

/// The features of a message and an agent: one for each field, and those that compare areas.
pub(super) const FEATURES: usize = Field::COUNT + 10;

/// The weight of each feature, in the order of [`super::fields::Field`] and of the constants in `measure`. Fitted as a
/// conditional logit over the agents of a team, regularized towards plausible values.
pub(super) const WEIGHTS: [f64; FEATURES] =
    [0.1, 0.55, 0.1, 0.17, 0.29, -0.1, 0.43, 0.8, 2.9, 1.5, 0.85, 1.0, 1.1, 1.4, 1.15, 0.45, -0.32, -0.16];

/// The confidence as a logit: intercept, weight of the lead over the next agent, weight of the logarithm of the content,
/// and a penalty for questions, which a look into files may answer. Fitted on the same messages and on ones that belong
/// to the coordinator. Other inputs (agreement of areas, words found, whether both pick the same agent) added nothing.
pub(super) const CALIBRATION: [f64; 4] = [-2.0, 1.15, 0.85, -0.6];

/// The router answers from this confidence on. Chosen on teams that it was not fitted to.
pub(super) const SURE: f64 = 0.79;

/// Factor on the confidence when the message calls a member that cannot be started.
pub(super) const UNAVAILABLE: f64 = 0.8;

/// Added to the logit when one agent's past work has nearly all words of the message, and any other's far fewer.
pub(super) const EXPLAINED: f64 = 1.5;
pub(super) const NEARLY_ALL: f64 = 0.75;
pub(super) const FAR_FEWER: f64 = 0.6;
