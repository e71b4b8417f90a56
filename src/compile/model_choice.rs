//! Which model an agent gets: four layers, the first that says something wins; then the fallback chain, where the
//! engine does not offer that model (DESIGN §5).

use crate::model::{Charter, Member, ModelChoice, ModelLayer, Offer, Tier, Unoffered};
use crate::settings::Settings;

/// A layer's model.
type Candidate<'a> = (&'a String, ModelLayer);

pub(super) fn resolve(
    member: &Member,
    charter: Option<&Charter>,
    settings: &Settings,
    tier: Tier,
    offer: &Offer,
) -> ModelChoice {
    let models = &settings.models;
    let names = [member.slug.as_str().to_owned(), member.name.to_lowercase(), member.role.to_lowercase()];
    let all = "all".to_owned();
    let wished =
        names.iter().chain([&all]).find_map(|name| models.overrides.get(name)).map(|id| (id, ModelLayer::User));
    let default = (&models.default, ModelLayer::Default);
    // Lightweight is the small model by definition, whatever the charter prefers for real work.
    if matches!(tier, Tier::Direct | Tier::Lightweight) {
        let first = wished.unwrap_or((&models.lightweight, ModelLayer::Default));
        return offered(first, [default].into_iter(), offer);
    }
    let chartered = charter.and_then(|charter| charter.model.as_ref()).map(|id| (id, ModelLayer::Charter));
    let fallback = charter.into_iter().flat_map(|charter| &charter.fallback).map(|id| (id, ModelLayer::Charter));
    let of_role = names.iter().find_map(|name| models.roles.get(name)).map(|id| (id, ModelLayer::Role));
    // Work in the full tier is worth the premium model, whatever the charter prefers for the rest.
    let of_tier = Some((&models.premium, ModelLayer::Default)).filter(|_| tier == Tier::Full);
    let first = wished.or(of_tier).or(chartered).or(of_role).unwrap_or(default);
    offered(first, chartered.into_iter().chain(fallback).chain(of_role).chain([default]), offer)
}

/// What the charter says of thinking, where the model takes it. A small model in the lightweight tier is not asked to.
pub(super) fn effort(charter: Option<&Charter>, model: &ModelChoice, tier: Tier, offer: &Offer) -> Option<String> {
    let wanted = charter?.reasoning_effort.as_ref()?;
    let is_for_work = !matches!(tier, Tier::Direct | Tier::Lightweight);
    (is_for_work && offer.takes_effort(model, wanted)).then(|| wanted.clone())
}

/// The coordinator routes and summarises: by `models.coordinator` or the default model, unless the user or
/// `[models.roles]` says otherwise.
pub(super) fn coordinator(settings: &Settings, offer: &Offer) -> ModelChoice {
    let models = &settings.models;
    let wished = ["coordinator", "all"].iter().find_map(|name| models.overrides.get(*name));
    let of_role = models.roles.get("coordinator").map(|id| (id, ModelLayer::Role));
    let default = (&models.default, ModelLayer::Default);
    let own = models.coordinator.as_ref().map(|id| (id, ModelLayer::Default));
    let first = wished.map(|id| (id, ModelLayer::User)).or(of_role).or(own).unwrap_or(default);
    offered(first, of_role.into_iter().chain(own).chain([default]), offer)
}

/// The first choice, or the first of the chain that the engine offers, or else what the engine takes by itself.
fn offered<'a>(
    (wanted, layer): Candidate<'a>,
    mut chain: impl Iterator<Item = Candidate<'a>>,
    offer: &Offer,
) -> ModelChoice {
    if let Some(id) = offer.spelling(wanted) {
        return ModelChoice::new(id, layer);
    }
    if let Some(id) = offer.default.as_ref().filter(|_| offer.is_users && layer != ModelLayer::User) {
        return ModelChoice::new(id, ModelLayer::User);
    }
    let next = chain.find_map(|(id, layer)| Some((offer.spelling(id)?.to_owned(), layer)));
    let (id, layer) = next.unwrap_or_else(|| (offer.default.clone().unwrap_or_default(), ModelLayer::Engine));
    ModelChoice { id, layer, instead_of: Some(Unoffered { model: wanted.clone(), engine: offer.engine.clone() }) }
}
