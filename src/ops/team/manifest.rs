//! `.squad/manifest.toml` records which of a team's files squad installed, and from which texts. `squad upgrade` uses it.
//!
//! Without a manifest, squad upgrades no file of the team.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::templates::{Templates, hash};
use crate::error::Failure;

pub(crate) const FILE: &str = "manifest.toml";

/// The format that this squad writes, and the newest that it reads.
const FORMAT: u32 = 1;

const HEADER: &str =
    "# Written by squad, for `squad upgrade`: the files it installed, and hashes of the texts they were made from.\n";

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The release of the files.
    pub(crate) release: u32,
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
    pub(crate) fn of(templates: &Templates) -> Self {
        let owned = |(path, bytes): (&String, &Vec<u8>)| (path.clone(), Owned { base: hash(bytes), template: None });
        Self { format: FORMAT, release: templates.release, files: templates.owned().map(owned).collect() }
    }

    /// Fails if it is not a valid manifest, or if a newer squad wrote it.
    pub(crate) fn read(text: &str, at: &str) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let invalid = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            let line = 1 + text.get(..offset).map_or(0, |before| before.matches('\n').count());
            Failure::team(format!("is not a valid manifest: {}", error.message()))
                .at(format!("{at}:{line}"))
                .hint("restore it from an earlier commit; without it, squad upgrades none of these files")
        };
        let Format { format } = toml::from_str(text).map_err(|error| invalid(&error))?;
        if format > FORMAT {
            return Err(newer(at, &format!("format {format}"), &format!("up to {FORMAT}")));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| invalid(&error))?;
        let is_inside = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        match manifest.files.keys().find(|path| !is_inside(path)) {
            Some(path) => Err(Failure::team(format!("`{path}` is not in the team's folder")).at(at)),
            None => Ok(manifest),
        }
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
        Some(Self { files: files.collect(), ..self.clone() })
    }
}

fn newer(at: &str, theirs: &str, ours: &str) -> Failure {
    Failure::team(format!("a newer squad wrote these files: {theirs}; this one supports {ours}"))
        .at(at)
        .hint("upgrade squad itself; until then it reads the team but does not change these files")
}

/// An upgrade that is due.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Due {
    /// The release of the team's files.
    pub(crate) release: u32,
    /// The release that this squad installs.
    pub(crate) newest: u32,
}

/// `None` if there is no manifest, or if it cannot be read, which `doctor` reports.
pub(crate) fn due(folder: &Path, newest: u32) -> Option<Due> {
    let manifest = Manifest::read(&fs::read_to_string(folder.join(FILE)).ok()?, FILE).ok()?;
    (manifest.release != newest).then_some(Due { release: manifest.release, newest })
}
