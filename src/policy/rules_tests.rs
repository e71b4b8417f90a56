use proptest::prelude::*;

use super::rules::{Answer, PolicyRequest, PolicyRules};
use crate::model::{Access, Kind, Member, Module, Slug, Source, Status, Team, Tier};
use crate::settings::{Origin, Settings, from_toml};

/// The rules of a team's file and a user's, for a team that has ada.
fn rules(project: &str, user: &str) -> PolicyRules {
    let (project, wrong) = from_toml(project, |line| Origin::Project("team".to_owned(), line));
    assert!(wrong.is_empty(), "{wrong:?}");
    let (user, wrong) = from_toml(user, |line| Origin::User("own".to_owned(), line));
    assert!(wrong.is_empty(), "{wrong:?}");
    let (settings, _) = Settings::resolve([project, user]);
    let mut team = Team::default();
    let (name, role, source) = ("Ada".to_owned(), "Backend".to_owned(), Source::new("t", 1));
    let (kind, status, charter, scope) = (Kind::Agent, Status::Active, None, String::new());
    team.members.push(Member { name, slug: ada(), role, kind, status, charter, scope, source });
    let module =
        |path: &str, primary| Module { path: path.to_owned(), primary, secondary: None, source: Source::new("r", 1) };
    team.modules = vec![module("server", ada()), module("web", Slug::coordinator())];
    PolicyRules::new(settings.policy_rules(), &team)
}

fn ada() -> Slug {
    Slug::fold("ada").expect("a name")
}

/// `allow`, `ask`, `deny` or `-`, and the rule.
fn answer(rules: &PolicyRules, agent: &Slug, tier: Tier, access: Access, what: &str) -> String {
    let path = (access == Access::Write && !what.starts_with('/')).then_some(what);
    let tool = if access == Access::Mcp { what } else { "x" };
    let request = PolicyRequest { agent, tier, access, tool, detail: what, path };
    rules.answer(&request).map_or("-".to_owned(), |answered| {
        let word = match answered.answer {
            Answer::Allow => "allow",
            Answer::Ask => "ask",
            Answer::Deny => "deny",
        };
        format!("{word} {}", answered.source)
    })
}

/// A subject's rule for everybody, one pattern, and what it answers for each text.
#[test]
fn each_rule_answers_for_what_it_is_about() {
    use Access::{Mcp, Network, Own, Read, Shell, Write};
    for (rule, access, cases) in [
        (
            r#"commands.deny = ["git push"]"#,
            Shell,
            &[
                ("git push", "deny"),
                ("git -C . push origin", "deny"),
                ("git --no-pager -C x push", "deny"),
                ("/usr/bin/git push", "deny"),
                ("ls; cd x && git push", "deny"),
                ("sh -c 'git push'", "deny"),
                ("timeout 5 git push", "deny"),
                ("sudo -u ann bash -lc \"git push\"", "deny"),
                ("echo $(git push)", "deny"),
                ("find . -exec git push ;", "deny"),
                ("xargs git push < a", "deny"),
                ("eval git push", "deny"),
                ("X=push; git $X", "deny"),
                ("ssh host 'git push'", "deny"),
                ("git commit -m 'no push'", "-"),
                ("git commit -m push", "-"),
                ("echo git push", "-"),
                ("git status", "-"),
                ("gitx push", "-"),
                ("$TOOL push", "ask"),
                ("curl x | sh", "ask"),
                ("echo 'git push' | sh", "ask"),
                ("cat x | bash", "ask"),
                ("sh <<E\ngit push\nE", "deny"),
                ("sh <<E\nls\nE", "-"),
                ("sh <<E\n$X\nE", "ask"),
                ("sh <<E < x\nls\nE", "ask"),
                ("bash <<'E'\nX=push\ngit $X\nE", "deny"),
                ("bash <<E\nX=push\ngit $X\nE", "ask"),
                ("bash -s <<< \"git push\"", "ask"),
                ("bash <<< 'ls'", "-"),
                ("sudo bash <<< 'git push'", "deny"),
                ("bash < x", "ask"),
                ("cat x | python3", "ask"),
                ("python3 < x", "ask"),
                ("cat x | sudo python3 -", "ask"),
                ("python3 <<E\n$X\nE", "ask"),
                ("python3 <<'E'\nprint(1)\nE", "-"),
                ("python3 <<'E'\nimport subprocess\nE", "ask"),
                ("cat x | python3 -c 'import json'", "-"),
                ("cat x | python3 -m json.tool", "-"),
                ("python3 -c 'import os; os.system(x)'", "ask"),
                ("echo 'git push' | at now", "ask"),
                ("make -f - < x", "ask"),
                ("xargs sh -c", "ask"),
                ("xargs -I% sh -c %", "ask"),
                ("xargs -I% sh -c 'ls %'", "ask"),
                ("echo push | xargs -I% git %", "ask"),
                ("echo push | xargs -I % git %", "ask"),
                ("echo push | xargs --replace=% git %", "ask"),
                ("echo push | xargs -0I % git %", "ask"),
                ("xargs -0I% sh -c %", "ask"),
                ("ls | xargs -n1 cp -t x", "-"),
                ("ls | xargs -0I {} cp {} x", "-"),
                ("echo push | xargs -i git {}", "ask"),
                ("echo git push | xargs env", "ask"),
                ("echo git push | xargs sudo -n", "ask"),
                ("echo push | sudo xargs git", "ask"),
                ("ls | xargs", "-"),
                ("ls | xargs -n 1", "-"),
                ("ls | xargs cargo test", "-"),
                ("ls | xargs -I{} cp {} x", "-"),
                ("ls | xargs -P \"$N\" cp -t x", "-"),
                ("cat x | parallel", "ask"),
                ("sudo $X push", "ask"),
                ("sudo -n $X push", "ask"),
                ("sudo -u \"$X\" ls", "-"),
                ("sudo -u \"$X\" $Y", "ask"),
                ("sudo -u ann $X push", "ask"),
                ("sudo -E ls $X", "-"),
                ("sudo -E $X push", "ask"),
                ("strace -o x $X push", "ask"),
                ("timeout 5 $X", "ask"),
                ("timeout \"$X\" ls", "-"),
                ("env $X", "ask"),
                ("env A=\"$X\" ls", "-"),
                ("env GIT_EDITOR=\"$X\" git commit", "ask"),
                ("export GIT_EDITOR=\"$X\"; git commit", "ask"),
                ("export A=\"$X\"; git commit", "-"),
                ("find . -exec $X push +", "ask"),
                ("git up", "ask"),
                ("git -C x up", "ask"),
                ("git --attr-source HEAD push", "deny"),
                ("git --no-pager log", "-"),
                ("git --version", "-"),
                ("git lfs pull", "-"),
                ("git config core.editor 'git push'", "ask"),
                ("git config user.name Ann", "-"),
                ("git grep -O'git push' x", "ask"),
                ("sed 's/x/git push/e' f", "ask"),
                ("LESSOPEN='|git push' less x", "ask"),
                ("man -P 'git push' ls", "ask"),
                ("command -v git", "-"),
                ("command -V git push", "-"),
                ("command git push", "deny"),
                ("command -p git push", "ask"),
                ("git $X", "ask"),
                ("eval \"$X\"", "ask"),
                ("bash -c -- 'git push'", "deny"),
                ("bash -co errexit 'git push'", "deny"),
                ("bash -eo pipefail <<< 'git push'", "ask"),
                ("bash -s x <<< 'git push'", "ask"),
                ("bash build.sh", "-"),
                ("bash -e build.sh", "-"),
                ("bash /dev/stdin <<< 'git push'", "ask"),
                (". /dev/stdin <<< 'git push'", "ask"),
                (". ./env.sh", "-"),
                ("eval -- git push", "deny"),
                ("trap 'git push' EXIT", "deny"),
                ("env -S'git push'", "deny"),
                ("env --split-string='git push'", "deny"),
                ("/usr/bin/gi[t] push", "ask"),
                ("git pus[h]", "ask"),
                ("echo push | xargs git", "ask"),
                ("alias g=git; g push", "ask"),
                ("GIT push", "deny"),
                ("git.EXE push", "deny"),
                ("[ -f a ] && ls", "-"),
                ("git log --format={a}", "-"),
            ][..],
        ),
        (
            r#"commands.deny = ["git push --force"]"#,
            Shell,
            &[
                ("git push --force", "deny"),
                ("git push origin main --force", "deny"),
                ("git push --force=x", "deny"),
                ("git push", "-"),
                ("git push --force-with-lease", "-"),
            ][..],
        ),
        (
            r#"commands.allow = ["cargo test", "git push"]"#,
            Shell,
            &[
                ("cargo test", "allow"),
                ("cargo test --lib a 2>&1", "allow"),
                ("cargo test && git push", "allow"),
                ("cargo test | tee a", "-"),
                ("cargo test; rm a", "-"),
                ("cargo testing", "-"),
                ("cargo +nightly test", "-"),
                ("cargo", "-"),
                ("cargo test $(rm a)", "-"),
                ("cargo test > a", "-"),
                ("A=b cargo test", "-"),
                ("sudo cargo test", "-"),
                ("cargo $X", "-"),
                ("./cargo test", "-"),
                ("/tmp/cargo test", "-"),
                ("", "-"),
            ][..],
        ),
        (
            r#"commands.deny = ["./deploy.sh", "rm -rf"]"#,
            Shell,
            &[
                ("./deploy.sh now", "deny"),
                ("sh -c ./deploy.sh", "deny"),
                ("rm -fr src", "deny"),
                ("rm -r -f src", "deny"),
                ("rm -r src", "-"),
            ][..],
        ),
        (
            r#"commands.allow = ["./tools/check.sh"]"#,
            Shell,
            &[("./tools/check.sh -v", "allow"), ("tools/check.sh", "allow"), ("check.sh", "-")][..],
        ),
        (
            r#"commands.only = ["cargo"]"#,
            Shell,
            &[("cargo test", "-"), ("cargo test; ls", "deny"), ("ls", "deny"), ("$X", "deny"), ("", "deny")][..],
        ),
        (
            r#"writes.deny = ["./infra/", "**/*.lock", ".github/**"]"#,
            Write,
            &[
                ("infra/a/b.tf", "deny"),
                ("INFRA/a", "deny"),
                ("infrastructure/a", "-"),
                ("a/b.lock", "deny"),
                ("Cargo.lock", "deny"),
                (".github/workflows/a.yml", "deny"),
                ("src/infra/a", "-"),
            ][..],
        ),
        (
            r#"writes.only = ["src/**", "*.md"]"#,
            Write,
            &[("src/a/b.rs", "-"), ("a.md", "-"), ("docs/a.md", "deny"), ("/etc/passwd", "deny")][..],
        ),
        (r#"writes.only = ["@owned"]"#, Write, &[("server/a.rs", "-"), ("web/a.rs", "deny"), ("@owned", "deny")][..]),
        (
            r#"hosts.allow = ["*.example.com", "localhost:8080"]"#,
            Network,
            &[
                ("https://api.example.com/x", "allow"),
                ("https://API.example.com:444", "allow"),
                ("https://example.com", "-"),
                ("http://localhost:8080/a", "allow"),
                ("http://localhost:9090/a", "-"),
                ("https://api.example.com@evil.org", "-"),
                ("https://u:p%40@api.example.com/", "allow"),
                ("https://evil.org\\\\@api.example.com/", "-"),
                ("https://a@evil.org@api.example.com/", "-"),
                ("https://evil.org/?a=.example.com", "-"),
            ][..],
        ),
        (
            r#"hosts.deny = ["evil.org"]"#,
            Network,
            &[
                ("https://evil.org:444/x", "deny"),
                ("https://evil.org./x", "deny"),
                ("https://ok.org", "-"),
                ("https://a@evil.org", "deny"),
                ("https://evil.org@ok.org", "-"),
                ("https://ok.org:443@evil.org", "deny"),
                ("https://a@ok.org@evil.org", "ask"),
                ("https://evil.org\\\\@ok.org", "ask"),
                ("http://10.1/", "-"),
                ("http://1.2.3.4.5/", "ask"),
                ("ftp://evil.org", "ask"),
            ][..],
        ),
        (
            r#"hosts.deny = ["Example.com.:8443"]"#,
            Network,
            &[
                ("https://example.com:8443/x", "deny"),
                ("HTTPS://EXAMPLE.COM.:8443", "deny"),
                ("https://example.com", "-"),
                ("https://example.com:/x", "-"),
                ("https://example.com:84430", "ask"),
                ("https://example.com:+8443", "ask"),
            ][..],
        ),
        (
            r#"hosts.deny = ["example.com:443"]"#,
            Network,
            &[("https://example.com", "deny"), ("https://example.com:/x", "deny"), ("http://example.com", "-")][..],
        ),
        (
            r#"hosts.deny = ["[0:0::1]:80"]"#,
            Network,
            &[
                ("http://[::1]/", "deny"),
                ("http://[0:0:0:0:0:0:0:1]:80", "deny"),
                ("http://[::1]:81", "-"),
                ("http://[::1%25lo]/", "ask"),
                ("http://[::1", "ask"),
            ][..],
        ),
        (
            r#"hosts.deny = ["127.0.0.1"]"#,
            Network,
            &[
                ("http://127.0.0.1:9", "deny"),
                ("http://[::ffff:127.0.0.1]/", "deny"),
                ("http://127.1/", "deny"),
                ("http://2130706433/", "deny"),
                ("http://0x7f000001/", "deny"),
                ("http://0177.0.0.1/", "deny"),
                ("http://u@127.1:8080/", "deny"),
                ("http://127.2/", "-"),
                ("http://127.0.0.2/", "-"),
            ][..],
        ),
        (
            r#"hosts.deny = ["xn--bcher-kva.example"]"#,
            Network,
            &[("https://XN--bcher-kva.example/a", "deny"), ("https://bücher.example", "ask")][..],
        ),
        (
            r#"hosts.deny = ["177.0.0.1"]"#,
            Network,
            &[
                ("http://0177.0.0.1/", "deny"),
                ("http://0177.1/", "deny"),
                ("http://177.0.0.2/", "-"),
                ("http://127.0.0.1", "-"),
            ][..],
        ),
        (
            r#"hosts.only = ["127.0.0.1"]"#,
            Network,
            &[("http://127.0.0.1/", "-"), ("http://127.1/", "deny"), ("http://u@127.0.0.1/", "-")][..],
        ),
        (r#"hosts.allow = ["127.0.0.1"]"#, Network, &[("http://127.0.0.1/", "allow"), ("http://127.1/", "-")][..]),
        (r#"hosts.allow = ["[::1]:*"]"#, Network, &[("http://[::1]:8080", "allow"), ("http://[::2]:8080", "-")][..]),
        (r#"tools.deny = ["github-*"]"#, Mcp, &[("github-create", "deny"), ("gitlab-create", "-")][..]),
        (r#"tools.deny = ["bash"]"#, Mcp, &[("bash", "deny"), ("read_bash", "deny")][..]),
        (r#"tools.allow = ["bash"]"#, Mcp, &[("bash", "allow"), ("evil_bash", "-")][..]),
        (r#"tools.ask = ["*"]"#, Own, &[("x", "ask")][..]),
        (r#"tools.only = ["view"]"#, Own, &[("x", "-")][..]),
        (r#"tools.only = ["view"]"#, Read, &[("x", "deny")][..]),
    ] {
        let rules = rules("", &format!("[policy]\n{rule}\n"));
        let found = |what: &&str| {
            answer(&rules, &ada(), Tier::Standard, access, what).split(' ').next().unwrap_or_default().to_owned()
        };
        let wrong = cases.iter().map(|(what, expected)| (what, *expected, found(what)));
        let wrong: Vec<_> = wrong.filter(|(_, expected, found)| expected != found).collect();
        assert!(wrong.is_empty(), "{rule}: {wrong:#?}");
    }
}

/// What may be the command that a rule denies is neither let pass nor denied: a person is asked.
#[test]
fn what_may_be_a_command_is_asked_about() {
    for (rule, cases) in [
        (
            "git push",
            &[
                ("git --no-pager push", "deny"),
                ("git -c core.pager=cat push", "deny"),
                ("git -C push status", "-"),
                ("git stash push", "-"),
                ("git -C \"$DIR\" push", "ask"),
                ("git -c \"$X\" commit", "ask"),
                ("git $(echo push)", "ask"),
                ("git commit -m \"$(git log -1)\"", "-"),
                ("git commit -m \"$(git push)\"", "deny"),
                ("g() { git \"$@\"; }; g push", "ask"),
                ("sudo git push", "deny"),
                ("sudo -u git git push --force", "deny"),
                ("sudo -u git push", "ask"),
                ("sudo echo git push", "ask"),
                ("timeout -k 1 5 git push", "deny"),
                ("ssh host git push", "deny"),
                ("xargs git push", "deny"),
                ("xargs -I{} git push {}", "deny"),
                ("find . -execdir git push +", "deny"),
                ("find git -name push", "-"),
                ("env A=b git push", "deny"),
                ("env -S 'git push'", "deny"),
                ("env git commit -m 'git push'", "ask"),
                ("poetry run git push", "ask"),
                ("docker run --rm x git -C y push", "ask"),
                ("npm run x -- 'git push'", "ask"),
                ("bash build.sh git push", "ask"),
                ("bash -c \"$X\"", "ask"),
                ("bash -c 'echo git push'", "-"),
                ("git submodule foreach 'git push'", "ask"),
                ("git submodule foreach git push", "ask"),
                ("git submodule update", "-"),
                ("git rebase -x 'git push' main", "ask"),
                ("git rebase --exec='git push' main", "ask"),
                ("git rebase -x \"$X\" main", "ask"),
                ("git rebase main", "-"),
                ("git bisect run git push", "ask"),
                ("git fetch --upload-pack='git push;' x", "ask"),
                ("git log --format='git push'", "-"),
                ("git -c core.editor='git push' commit", "ask"),
                ("git -c alias.x='!git push' x", "ask"),
                ("git -c alias.x=push x", "ask"),
                ("git --config-env=alias.x=X x", "ask"),
                ("git config alias.x push", "ask"),
                ("GIT_EDITOR='git push' git commit", "ask"),
                ("GIT_EDITOR=true git commit", "-"),
                ("GIT_SSH_COMMAND='git push' git fetch", "ask"),
                ("GIT_PAGER=\"$X\" git log", "ask"),
                ("GIT_CONFIG_COUNT=1 git x", "ask"),
                ("export GIT_EDITOR='git push'; git commit", "ask"),
                ("env GIT_EDITOR='git push' git commit", "ask"),
                ("python3 -c \"import os; os.system('git push')\"", "ask"),
                ("python3 - <<'E'\nrun(['git', '-C', 'x', 'push'])\nE", "ask"),
                ("python3 -c 'print(1)'", "-"),
                ("cat > a.md <<'E'\nRun git push.\nE", "-"),
                ("echo 'git push' > a", "-"),
                ("grep -r 'git push' .", "-"),
                ("make push", "-"),
                // What pushes, by other names.
                ("git send-pack origin main", "deny"),
                ("git -C x send-pack --all origin", "deny"),
                ("git http-push https://example.com/a.git main", "deny"),
                ("git subtree push --prefix=x origin main", "deny"),
                ("git subtree add --prefix=x push main", "-"),
                ("git lfs push origin main", "deny"),
                ("git lfs pull", "-"),
                ("git-push", "deny"),
                ("git-lfs push origin", "deny"),
                ("/usr/lib/git-core/git-send-pack origin", "deny"),
                ("sudo git-push", "deny"),
                ("poetry run git-push", "ask"),
                ("git-lfs pull", "-"),
                ("git-pushy", "-"),
                ("python3 -c \"run(['git', 'send-pack'])\"", "ask"),
                ("git for-each-repo --config=x push", "ask"),
                // Values of options, and addresses, that are commands.
                ("git fetch --upload-pack 'git push' x", "ask"),
                ("git fetch --upload-pack \"$X\" x", "ask"),
                ("git fetch --upload-pack git-upload-pack x", "-"),
                ("git clone -u 'git push' x y", "ask"),
                ("git push-x -u origin", "ask"),
                ("git branch -u origin/main", "-"),
                ("git send-email --sendmail-cmd='git push' x", "ask"),
                ("git clone 'ext::git push' x", "ask"),
                ("git remote add x ext::./run.sh", "ask"),
                ("VISUAL='git push' git commit", "ask"),
                ("PS4='$(git push)' bash -x y", "ask"),
                ("LESS='+!git push' less x", "ask"),
                ("HEADLESS=\"$X\" npm test", "-"),
                // Another name for a program.
                ("hash -p /usr/bin/git g; g push", "ask"),
                ("hash -r", "-"),
                ("enable -f ./x.so x", "ask"),
                ("enable -n test", "-"),
            ][..],
        ),
        (
            "cargo publish",
            &[
                ("cargo +nightly publish", "deny"),
                ("cargo --quiet publish", "ask"),
                ("cargo -p publish build", "ask"),
                ("cargo build -p publish", "-"),
                ("cargo $X", "ask"),
            ][..],
        ),
        (
            "git commit --no-verify",
            &[
                ("git commit --no-verify -m \"$X\"", "deny"),
                ("git commit -m \"$(cat a)\"", "ask"),
                ("git commit -nm a", "ask"),
                ("git commit --no-ver", "ask"),
                ("git commit -m a", "-"),
            ][..],
        ),
        ("rm -rf", &[("rm --recursive --force a", "ask"), ("rm --recursive a", "-")][..]),
        ("kubectl delete", &[("kubectl -n prod delete pod a", "ask"), ("kubectl get delete", "-")][..]),
    ] {
        let rules = rules("", &format!("[policy]\ncommands.deny = [\"{rule}\"]\n"));
        for (line, expected) in cases {
            let found = answer(&rules, &ada(), Tier::Standard, Access::Shell, line);
            assert_eq!(found.split(' ').next(), Some(*expected), "{rule}: {line}");
        }
    }
}

/// What a line writes into a file × what it does with that file then.
#[test]
fn a_script_that_a_line_writes_and_runs_is_looked_into() {
    let writes = [
        "echo 'git push' > x.sh",
        "printf 'git push\\n' >> ./x.sh",
        "cat > x.sh <<'E'\nset -e\ngit push\nE\n",
        "cat <<E > x.sh\ncd $DIR && git push\nE\n",
        "tee x.sh <<'E'\ngit push\nE\n",
        "echo 'git push' | tee -a x.sh",
    ];
    let rules = rules("", "[policy]\ncommands.deny = [\"git push\"]\n");
    let answer = |line: &str| {
        let found = answer(&rules, &ada(), Tier::Standard, Access::Shell, line);
        found.split(' ').next().unwrap_or_default().to_owned()
    };
    for write in writes {
        for (run, expected) in [
            ("sh x.sh", "ask"),
            ("sudo bash -e ./x.sh", "ask"),
            ("chmod +x x.sh && ./x.sh", "ask"),
            ("sudo ./x.sh", "ask"),
            ("(cd . ; nohup sh x.sh &)", "ask"),
            ("sh -c ./x.sh", "ask"),
            (". ./x.sh", "ask"),
            ("python3 x.sh", "ask"),
            ("make -f x.sh", "ask"),
            ("sh y.sh", "-"),
            ("cat x.sh", "-"),
            ("git commit -F x.sh", "-"),
            ("gh pr create --body-file x.sh", "-"),
            ("true", "-"),
        ] {
            let line = format!("{write}{}{run}", if write.ends_with('\n') { "" } else { "; " });
            assert_eq!(answer(&line), expected, "{line}");
        }
    }
    for line in ["echo hi > x.sh; sh x.sh", "cat > x.sh <<'E'\ngit pull\nE\nsh x.sh", "echo 'git push'; sh x.sh"] {
        assert_eq!(answer(line), "-", "{line}");
    }
}

/// Every pair of words on the same command, in the team's file and the user's: the stricter one decides, but the team's
/// never allows.
#[test]
fn the_strictest_rule_decides_whichever_file_it_stands_in() {
    let says = |word: &str| match word {
        "" => String::new(),
        "only" => "[policy]\ncommands.only = [\"cargo\"]\n".to_owned(),
        word => format!("[policy]\ncommands.{word} = [\"git\"]\n"),
    };
    for team in ["", "allow", "ask", "deny", "only"] {
        for own in ["", "allow", "ask", "deny", "only"] {
            let rules = rules(&says(team), &says(own));
            let found = answer(&rules, &ada(), Tier::Standard, Access::Shell, "git status");
            let both = [(team, "team:2"), (own, "own:2")];
            let denied = both.iter().rev().find(|(word, _)| ["deny", "only"].contains(word));
            let expected = match (denied, both.iter().rev().find(|(word, _)| *word == "ask")) {
                (Some(_), _) => "deny",
                (None, Some(_)) => "ask",
                (None, None) if own == "allow" => "allow",
                _ => "-",
            };
            assert_eq!(found.split(' ').next(), Some(expected), "{team} {own}: {found}");
        }
    }
}

#[test]
fn a_rule_is_for_the_agent_or_tier_that_it_names() {
    let rules = rules(
        "[policy]\nagents.backend.commands.deny = [\"make\"]\ntiers.full.commands.deny = [\"npm\"]\nagents.nobody.commands.deny = [\"ls\"]\n",
        "",
    );
    for (agent, tier, what, expected) in [
        (ada(), Tier::Standard, "make", "deny team:2"),
        (Slug::coordinator(), Tier::Standard, "make", "-"),
        (ada(), Tier::Full, "npm x", "deny team:3"),
        (Slug::coordinator(), Tier::Full, "npm x", "deny team:3"),
        (ada(), Tier::Standard, "npm x", "-"),
        (ada(), Tier::Standard, "ls", "-"),
    ] {
        assert_eq!(answer(&rules, &agent, tier, Access::Shell, what), expected, "{agent} {tier} {what}");
    }
    assert_eq!(rules.restricts(&ada(), Tier::Standard), Some("policy.agents.backend.commands.deny"));
    assert_eq!(rules.restricts(&Slug::coordinator(), Tier::Standard), None);
}

/// The line is what `squad policy test` prints, and what the model is told.
#[test]
fn a_denial_names_its_rule_and_what_would_be_allowed() {
    let rules = rules("[policy]\n\nwrites.only = [\"src/**\", \"docs/**\"]\n", "");
    let agent = ada();
    let request = PolicyRequest {
        agent: &agent,
        tier: Tier::Standard,
        access: Access::Write,
        tool: "edit",
        detail: "a",
        path: Some("a"),
    };
    let reason = rules.answer(&request).expect("it is denied").reason();
    assert_eq!(reason, "denied by the rule `policy.writes.only` (team:3); what it allows: src/** and docs/**");
}

proptest! {
    /// No line makes the judgement panic, and no line that a rule allows runs what another program than its own.
    #[test]
    fn any_line_is_judged(line in "(cargo test|git push|rm|sh -c|sudo|'|\"|;|&&|\\||\\$X|\\$\\(|\\)|\\{|\\}|<<E|\n| |a|--|-c|eval){0,12}") {
        let denying = rules("", "[policy]\ncommands.deny = [\"rm\"]\n");
        let allowing = rules("", "[policy]\ncommands.allow = [\"cargo test\"]\n");
        let answer = |rules: &PolicyRules| answer(rules, &ada(), Tier::Standard, Access::Shell, &line);
        let _ = answer(&denying);
        if answer(&allowing).starts_with("allow") {
            prop_assert!(!answer(&denying).starts_with("deny"), "{}", line);
        }
    }
}

/// What hides in wrappers, scripts and variables is bounded.
#[test]
fn a_long_line_is_judged_in_bounded_work() {
    let rules = rules("", "[policy]\ncommands.deny = [\"rm\"]\n");
    for line in ["sudo ".repeat(5_000), "sh -c \"".repeat(60), "sudo 'a b' ".repeat(300), "eval eval ".repeat(2_000)] {
        let found = answer(&rules, &ada(), Tier::Standard, Access::Shell, &line);
        assert!(found.starts_with("ask"), "{found}");
    }
}
