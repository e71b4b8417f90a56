//! Which model an agent gets: four layers, the first that says something wins (DESIGN §5).

use crate::model::{Charter, Member, ModelChoice, ModelLayer, Tier};
use crate::settings::Settings;

pub(super) fn resolve(member: &Member, charter: Option<&Charter>, settings: &Settings, tier: Tier) -> ModelChoice {
    let models = &settings.models;
    let chosen = |id: &String, layer| ModelChoice { id: id.clone(), layer };
    let names = [member.slug.as_str().to_owned(), member.name.to_lowercase(), member.role.to_lowercase()];
    let all = "all".to_owned();
    if let Some(id) = names.iter().chain([&all]).find_map(|name| models.overrides.get(name)) {
        return chosen(id, ModelLayer::User);
    }
    // Lightweight is the small model by definition, whatever the charter prefers for real work.
    if matches!(tier, Tier::Direct | Tier::Lightweight) {
        return chosen(&models.lightweight, ModelLayer::Default);
    }
    if let Some(id) = charter.and_then(|charter| charter.model.as_ref()) {
        return chosen(id, ModelLayer::Charter);
    }
    if let Some(id) = names.iter().find_map(|name| models.roles.get(name)) {
        return chosen(id, ModelLayer::Role);
    }
    chosen(if tier == Tier::Full { &models.premium } else { &models.default }, ModelLayer::Default)
}

/// The coordinator routes and summarises: the default model, unless the user or `[models.roles]` says otherwise.
pub(super) fn coordinator(settings: &Settings) -> ModelChoice {
    let models = &settings.models;
    if let Some(id) = ["coordinator", "all"].iter().find_map(|name| models.overrides.get(*name)) {
        return ModelChoice { id: id.clone(), layer: ModelLayer::User };
    }
    match models.roles.get("coordinator") {
        Some(id) => ModelChoice { id: id.clone(), layer: ModelLayer::Role },
        None => ModelChoice { id: models.default.clone(), layer: ModelLayer::Default },
    }
}
