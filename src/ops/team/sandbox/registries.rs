//! The registries from which the user's package managers load: what the user's own settings name, else those that the
//! programs have built in. Settings of the repository name none, or it could have agents send things anywhere.

use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::env::files::read_within;
use crate::model::{HostPattern, HostPort};

/// The largest file of settings that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The hosts of all of them.
pub(super) fn of_user(env: &Env) -> Vec<HostPattern> {
    let home = env.variable("HOME").map(Path::new).filter(|home| home.is_absolute());
    let config = env.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let config = config.or_else(|| Some(home?.join(".config")));
    let below = |folder: Option<&Path>, name: &str| text(&folder?.join(name));
    let at_home = |name: &str| below(home, name);
    let named = |name: &str| text(Path::new(env.variable(name)?));
    let variables = |names: &[&str]| names.iter().filter_map(|name| env.variable(name)).collect::<Vec<_>>().join(" ");
    let all = |texts: &[Option<String>]| texts.iter().flatten().cloned().collect::<Vec<_>>().join("\n");

    let npm = all(&[at_home(".npmrc"), named("NPM_CONFIG_USERCONFIG"), named("npm_config_userconfig")]);
    let npm_variables = variables(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]);
    let cargo = env.variable("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    let cargo = all(&[below(cargo.as_deref(), "config.toml"), below(cargo.as_deref(), "config")]);
    let pip = all(&[
        below(config.as_deref(), "pip/pip.conf"),
        at_home(".pip/pip.conf"),
        text(Path::new("/etc/pip.conf")),
        named("PIP_CONFIG_FILE"),
    ]);
    let go = all(&[below(config.as_deref(), "go/env")]);
    let hosts = [
        of_npm(&npm, &npm_variables),
        of_cargo(&cargo),
        of_pip(&pip, &variables(&["PIP_INDEX_URL"]), &variables(&["PIP_EXTRA_INDEX_URL"])),
        of_go(&go, &variables(&["GOPROXY"]), &variables(&["GOSUMDB"])),
    ];
    let mut patterns = Vec::new();
    for host in hosts.concat() {
        if !patterns.contains(&host) {
            patterns.push(host);
        }
    }
    patterns
}

fn text(path: &Path) -> Option<String> {
    let bytes = read_within(path, LARGEST).ok()?.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The hosts of all addresses in a text.
fn addresses(text: &str) -> Vec<HostPattern> {
    let parts = text.split(|c: char| c.is_whitespace() || "\"'`,|<>[]{}".contains(c));
    let begins = |part: &str| Some(part[part.find("http://").or_else(|| part.find("https://"))?..].to_owned());
    parts.filter_map(begins).filter_map(|url| HostPort::of_url(&url)).map(HostPattern::from).collect()
}

fn built_in(hosts: &[&str]) -> Vec<HostPattern> {
    hosts.iter().filter_map(|host| HostPattern::parse(host).ok()).collect()
}

/// Settings of the form `NAME = VALUE`, comments left out.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}

fn of_npm(settings: &str, variable: &str) -> Vec<HostPattern> {
    let main = fields(settings).filter(|(name, _)| *name == "registry").map(|(_, value)| value);
    let scoped = fields(settings).filter(|(name, _)| name.ends_with(":registry")).map(|(_, value)| value);
    let mut hosts = addresses(&main.chain([variable]).collect::<Vec<_>>().join(" "));
    if hosts.is_empty() {
        hosts = built_in(&["registry.npmjs.org", "registry.yarnpkg.com"]);
    }
    hosts.extend(addresses(&scoped.collect::<Vec<_>>().join(" ")));
    hosts
}

fn of_cargo(settings: &str) -> Vec<HostPattern> {
    let table: toml::Table = toml::from_str(settings).unwrap_or_default();
    let inner = |name: &str| table.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let (sources, registries) = (inner("source"), inner("registries"));
    let is_replaced = sources.get("crates-io").is_some_and(|source| source.get("replace-with").is_some());
    let named = sources.values().chain(registries.values());
    let named = named.flat_map(|one| ["index", "registry"].map(|name| one.get(name).and_then(toml::Value::as_str)));
    let mut hosts = addresses(&named.flatten().collect::<Vec<_>>().join(" "));
    if !is_replaced {
        hosts.extend(built_in(&["index.crates.io", "static.crates.io", "crates.io"]));
    }
    hosts
}

fn of_pip(settings: &str, main: &str, more: &str) -> Vec<HostPattern> {
    let of = |wanted: &str| -> String {
        let mut values = String::new();
        // A value may go on in lines of its own.
        let mut is_it = false;
        for line in settings.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
            if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with(char::is_whitespace)) {
                is_it = name.trim().replace('_', "-") == wanted;
                values += if is_it { value } else { "" };
            } else if is_it && line.starts_with(char::is_whitespace) {
                values += line;
            } else {
                is_it = false;
            }
            values.push(' ');
        }
        values
    };
    let mut hosts = addresses(&(of("index-url") + main));
    if hosts.is_empty() {
        hosts = built_in(&["pypi.org", "files.pythonhosted.org"]);
    }
    hosts.extend(addresses(&(of("extra-index-url") + more)));
    hosts
}

fn of_go(settings: &str, proxy: &str, sums: &str) -> Vec<HostPattern> {
    let of = |wanted: &str, variable: &str| {
        let named = fields(settings).find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned());
        Some(variable.to_owned()).filter(|value| !value.is_empty()).or(named)
    };
    let mut hosts = match of("GOPROXY", proxy) {
        Some(named) => addresses(&named),
        None => built_in(&["proxy.golang.org"]),
    };
    // `NAME`, or `NAME+KEY ADDRESS`
    hosts.extend(match of("GOSUMDB", sums) {
        Some(named) if named == "off" => Vec::new(),
        Some(named) if named.contains("://") => addresses(&named),
        Some(named) => built_in(&[named.split(['+', ' ']).next().unwrap_or_default()]),
        None => built_in(&["sum.golang.org"]),
    });
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hosts: &[HostPattern]) -> Vec<String> {
        hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn npm_loads_from_what_its_settings_name() {
        let usual = &["registry.npmjs.org", "registry.yarnpkg.com"][..];
        for (settings, variable, hosts) in [
            ("", "", usual),
            ("registry=https://npm.example/all/\n", "", &["npm.example:443"]),
            (" registry = \"http://npm.example:4873\"", "", &["npm.example:4873"]),
            ("; registry=https://old.example\n# registry=https://older.example\n", "", usual),
            ("@shop:registry=https://npm.shop.example/\n", "", &[usual[0], usual[1], "npm.shop.example:443"]),
            ("//npm.example/:_authToken=https://not.example\n", "", usual),
            ("", "https://variable.example", &["variable.example:443"]),
            ("registry=${REGISTRY}\n", "", usual),
            ("registry=https://\u{1b}[31mx\n", "", usual),
        ] {
            assert_eq!(shown(&of_npm(settings, variable)), hosts, "{settings} {variable}");
        }
    }

    #[test]
    fn cargo_loads_from_what_its_settings_name() {
        let usual = &["index.crates.io", "static.crates.io", "crates.io"][..];
        let private = "[registries.shop]\nindex = \"sparse+https://cargo.shop.example/index/\"\n";
        let mirror =
            "[source.crates-io]\nreplace-with = \"near\"\n[source.near]\nregistry = \"sparse+http://near:8080/\"\n";
        for (settings, hosts) in [
            ("", usual),
            ("[net]\noffline = true\n", usual),
            (private, &["cargo.shop.example:443", usual[0], usual[1], usual[2]]),
            (mirror, &["near:8080"]),
            ("not [toml", usual),
        ] {
            assert_eq!(shown(&of_cargo(settings)), hosts, "{settings}");
        }
    }

    #[test]
    fn pip_loads_from_what_its_settings_name() {
        let usual = &["pypi.org", "files.pythonhosted.org"][..];
        for (settings, main, more, hosts) in [
            ("", "", "", usual),
            ("[global]\nindex-url = https://pip.example/simple\n", "", "", &["pip.example:443"][..]),
            ("[global]\nindex_url = https://pip.example/simple\n", "", "", &["pip.example:443"]),
            ("", "https://pip.example/simple", "", &["pip.example:443"]),
            (
                "[global]\nextra-index-url =\n    https://one.example\n    https://two.example\n[install]\nx = 1\n",
                "",
                "",
                &[usual[0], usual[1], "one.example:443", "two.example:443"],
            ),
            ("", "", "https://more.example", &[usual[0], usual[1], "more.example:443"]),
            ("#index-url = https://old.example\n", "", "", usual),
            ("[global]\ntrusted-host = https://no.example\n", "", "", usual),
        ] {
            assert_eq!(shown(&of_pip(settings, main, more)), hosts, "{settings} {main} {more}");
        }
    }

    #[test]
    fn go_loads_from_what_its_settings_name() {
        for (settings, proxy, sums, hosts) in [
            ("", "", "", &["proxy.golang.org", "sum.golang.org"][..]),
            ("GOPROXY=https://go.example,direct\n", "", "", &["go.example:443", "sum.golang.org"]),
            (
                "GOPROXY=https://go.example\n",
                "https://one.example|https://two.example,off",
                "",
                &["one.example:443", "two.example:443", "sum.golang.org"],
            ),
            ("", "off", "off", &[]),
            ("", "off", "sum.example+key https://sum.shop.example", &["sum.shop.example:443"]),
            ("", "off", "sum.example", &["sum.example"]),
        ] {
            assert_eq!(shown(&of_go(settings, proxy, sums)), hosts, "{settings} {proxy} {sums}");
        }
    }
}
