//! `.squad/manifest.toml` records which of a team's files squad installed, and from which texts. `squad upgrade` uses it.
//!
//! Without a manifest, squad upgrades no file of the team.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::own_file::{OwnFile, newer};
use super::templates::{Templates, hash};
use crate::error::Failure;
use crate::model::IntoMap;

pub(crate) const FILE: &str = "manifest.toml";

/// The format that this squad writes, and the newest that it reads.
const FORMAT: u32 = 1;

const OWN: OwnFile =
    OwnFile { what: "manifest", folder: "the team's folder", loss: "upgrades none of these files", format: FORMAT };

const HEADER: &str =
    "# Written by squad, for `squad upgrade`: the files it installed, and hashes of the texts they were made from.\n";

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The release of the files.
    pub(crate) release: u32,
    /// The user's own preset that the team was made from: a URL, or a folder's path from the project's root. `None`:
    /// squad's own templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preset: Option<String>,
    /// Files by path relative to the team folder.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Owned>,
}

/// A file that squad upgrades.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Owned {
    /// The hash of the text that it was made from.
    pub(crate) base: String,
    /// The template's path, if the file was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<String>,
}

impl Manifest {
    pub(crate) fn of(templates: &Templates, preset: Option<String>) -> Self {
        let owned = |(path, bytes): (&String, &Vec<u8>)| (path.clone(), Owned { base: hash(bytes), template: None });
        Self { format: FORMAT, release: templates.release, preset, files: templates.owned().map(owned).into_map() }
    }

    /// Fails if it is not a valid manifest, or if a newer squad wrote it.
    pub(crate) fn read(text: &str, at: &str) -> Result<Self, Failure> {
        OWN.read(text, at, |manifest: &Self| manifest.files.keys().collect())
    }

    /// Fails if the files are of a newer release than this squad has.
    pub(crate) fn require_known_release(&self, templates: &Templates, at: &str) -> Result<(), Failure> {
        match self.release > templates.release {
            true => Err(newer(at, &format!("release {}", self.release), &format!("release {}", templates.release))),
            false => Ok(()),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!("{HEADER}{}", toml::to_string(self).unwrap_or_default())
    }

    /// The manifest after files moved; `None` if it has none of them.
    pub(crate) fn moved(&self, from: &str, to: &str) -> Option<Self> {
        let inner = |path: &str| {
            path.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(str::to_owned)
        };
        self.files.keys().find(|path| inner(path).is_some())?;
        let files = self.files.iter().map(|(path, owned)| match inner(path) {
            Some(rest) => {
                let template = owned.template.clone().or_else(|| Some(path.clone()));
                (format!("{to}{rest}"), Owned { template, ..owned.clone() })
            }
            None => (path.clone(), owned.clone()),
        });
        Some(Self { files: files.into_map(), ..self.clone() })
    }
}

/// An upgrade that is due.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Due {
    /// The release of the team's files.
    pub(crate) release: u32,
    /// The release that this squad installs.
    pub(crate) newest: u32,
}

/// `None` if there is no manifest, or if it cannot be read, which `doctor` reports. Whether a preset has changed is not
/// known without fetching it.
pub(crate) fn due(folder: &Path, newest: u32) -> Option<Due> {
    let manifest = Manifest::read(&fs::read_to_string(folder.join(FILE)).ok()?, FILE).ok()?;
    (manifest.release != newest && manifest.preset.is_none()).then_some(Due { release: manifest.release, newest })
}
