//! Chooses the model of an agent: the first of four layers that names one wins. If the engine does not offer it, the
//! fallback chain follows.

use crate::model::{AvailableModels, Charter, Member, ModelChoice, ModelLayer, Tier, UnavailableModel};
use crate::settings::Settings;

/// A model and the layer that names it.
type Candidate<'a> = (&'a String, ModelLayer);

pub(super) fn resolve(
    member: &Member,
    charter: Option<&Charter>,
    settings: &Settings,
    tier: Tier,
    offer: &AvailableModels,
) -> ModelChoice {
    let models = &settings.models;
    let names = [member.slug.as_str().to_owned(), member.name.to_lowercase(), member.role.to_lowercase()];
    let all = "all".to_owned();
    let overridden =
        names.iter().chain([&all]).find_map(|name| models.overrides.get(name)).map(|id| (id, ModelLayer::User));
    let default = (&models.default, ModelLayer::Default);
    // Tier lightweight means the small model, whatever the charter prefers.
    if matches!(tier, Tier::Direct | Tier::Lightweight) {
        let first = overridden.unwrap_or((&models.lightweight, ModelLayer::Default));
        return offered(first, [default].into_iter(), offer);
    }
    let chartered = charter.and_then(|charter| charter.model.as_ref()).map(|id| (id, ModelLayer::Charter));
    let fallback = charter.into_iter().flat_map(|charter| &charter.fallback).map(|id| (id, ModelLayer::Charter));
    let role_model = names.iter().find_map(|name| models.roles.get(name)).map(|id| (id, ModelLayer::Role));
    // Tier full means the premium model, whatever the charter prefers.
    let tier_model = Some((&models.premium, ModelLayer::Default)).filter(|_| tier == Tier::Full);
    let first = overridden.or(tier_model).or(chartered).or(role_model).unwrap_or(default);
    offered(first, chartered.into_iter().chain(fallback).chain(role_model).chain([default]), offer)
}

/// The charter's reasoning effort, if the model supports it and the tier is for real work.
pub(super) fn effort(
    charter: Option<&Charter>,
    model: &ModelChoice,
    tier: Tier,
    offer: &AvailableModels,
) -> Option<String> {
    let wanted = charter?.reasoning_effort.as_ref()?;
    let is_for_work = !matches!(tier, Tier::Direct | Tier::Lightweight);
    (is_for_work && offer.takes_effort(model, wanted)).then(|| wanted.clone())
}

/// The coordinator's model: `models.coordinator` or the default, unless the user or `[models.roles]` says otherwise.
pub(super) fn coordinator(settings: &Settings, offer: &AvailableModels) -> ModelChoice {
    let models = &settings.models;
    let overridden = ["coordinator", "all"].iter().find_map(|name| models.overrides.get(*name));
    let role_model = models.roles.get("coordinator").map(|id| (id, ModelLayer::Role));
    let default = (&models.default, ModelLayer::Default);
    let own = models.coordinator.as_ref().map(|id| (id, ModelLayer::Default));
    let first = overridden.map(|id| (id, ModelLayer::User)).or(role_model).or(own).unwrap_or(default);
    offered(first, role_model.into_iter().chain(own).chain([default]), offer)
}

/// The first choice if offered, else the first offered model of the chain, else the engine's default.
fn offered<'a>(
    (wanted, layer): Candidate<'a>,
    mut chain: impl Iterator<Item = Candidate<'a>>,
    offer: &AvailableModels,
) -> ModelChoice {
    if let Some(id) = offer.spelling(wanted) {
        return ModelChoice::new(id, layer);
    }
    if let Some(id) = offer.default.as_ref().filter(|_| offer.is_users && layer != ModelLayer::User) {
        return ModelChoice::new(id, ModelLayer::User);
    }
    let next = chain.find_map(|(id, layer)| Some((offer.spelling(id)?.to_owned(), layer)));
    let (id, layer) = next.unwrap_or_else(|| (offer.default.clone().unwrap_or_default(), ModelLayer::Engine));
    ModelChoice {
        id,
        layer,
        instead_of: Some(UnavailableModel { model: wanted.clone(), engine: offer.engine.clone() }),
    }
}
