use super::*;

fn redacted(text: &str) -> (String, Vec<(String, usize)>) {
    let mut found = Vec::new();
    let text = Redactor::new(["hunter2-hunter2".to_owned(), "short".to_owned()]).text(text, &mut found);
    (text, found.into_iter().map(|redaction| (redaction.kind, redaction.count)).collect())
}

#[test]
fn every_rule_compiles() {
    for rule in &RULES {
        assert!(rule.regex().is_some(), "{}", rule.kind);
    }
}

#[test]
fn common_formats_are_redacted() {
    // Assembled here, so that no scanner reports this file as a leak.
    let cases = [
        ("github-token", format!("ghp_{}", "a1B2".repeat(9))),
        ("github-token", format!("github_pat_{}", "a1B2c3".repeat(5))),
        ("gitlab-token", format!("glpat-{}", "a1B2c3".repeat(4))),
        ("aws-access-key", format!("AKIA{}", "ABCD2345".repeat(2))),
        ("slack-token", format!("xoxb-{}", "1234567890-abcdef")),
        ("slack-webhook", format!("https://hooks.slack.com/services/{}", "T00000000/B00000000/abcdefghijkl")),
        ("google-api-key", format!("AIza{}", "a1B2c".repeat(7))),
        ("anthropic-key", format!("sk-ant-{}", "api03-abcdefghijklmnop1234")),
        ("openai-key", format!("sk-proj-{}", "abcdefghijklmnop1234")),
        ("stripe-key", format!("sk_live_{}", "abcdefghij1234")),
        ("npm-token", format!("npm_{}", "a1B2".repeat(9))),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", "a1B2c".repeat(11))),
        ("hugging-face-token", format!("hf_{}", "a1B2".repeat(9))),
        ("sendgrid-key", format!("SG.{}.{}", "a1B2".repeat(5), "a1B2".repeat(10))),
        ("digitalocean-token", format!("dop_v1_{}", "a1b2".repeat(16))),
        ("jwt", format!("eyJ{}.eyJ{}.{}", "hbGciOiJIUzI1", "zdWIiOiIxMjM0", "SflKxwRJSM")),
        ("private-key", format!("-----BEGIN RSA {}-----\nMIIE\n-----END RSA {}-----", "PRIVATE KEY", "PRIVATE KEY")),
    ];
    for (kind, secret) in cases {
        let (text, found) = redacted(&format!("before {secret} after"));
        assert_eq!(text, format!("before [redacted:{kind}] after"));
        assert_eq!(found, [(kind.to_owned(), 1)]);
    }
}

#[test]
fn secrets_are_recognized_by_context() {
    assert_eq!(redacted("DB=postgres://app:s3cr3tpw@db/x").0, "DB=postgres://app:[redacted:url-password]@db/x");
    assert_eq!(
        redacted("Authorization: Bearer abc123def456ghi789jkl").0,
        "Authorization: Bearer [redacted:authorization]"
    );
    assert_eq!(redacted("password = \"kJ8#mQ2$vX9\"").0, "password = \"[redacted:password]\"");
    assert_eq!(redacted("postgres://app:MyPassword9x@db/x").0, "postgres://app:[redacted:url-password]@db/x");
    assert_eq!(redacted("passphrase: S3cr3t-example-Q9").0, "passphrase: [redacted:password]");
    assert_eq!(redacted("it is hunter2-hunter2").0, "it is [redacted:known-secret]");
}

#[test]
fn email_addresses_are_redacted_and_remotes_are_not() {
    assert_eq!(redacted("ask ann.b+c@acme.io, please").0, "ask [redacted:email], please");
    for person in
        ["mailto:a@acme.io", "Contact:a@acme.io", "see a@acme.io:please", "https://x/a@acme.io", "<a@acme.io>"]
    {
        assert_eq!(redacted(person).0, person.replace("a@acme.io", "[redacted:email]"));
    }
    for kept in
        ["git@github.com:acme/x.git", "ssh://git@host.example/x", "deploy@build.acme.io:/srv/x", "a @mention here"]
    {
        assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()));
    }
}

#[test]
fn a_password_may_be_any_word() {
    for (text, secret) in [
        ("password: hunter2", "hunter2"),
        ("DB_PASSWORD=correcthorse", "correcthorse"),
        ("password = \"correct horse battery\"", "correct horse battery"),
        ("{\"password\":\"sunshine\"}", "sunshine"),
        ("MYSQL_PWD=Summer!", "Summer!"),
        ("--password sunshine123", "sunshine123"),
        ("curl -u admin:letmein99 https://x", "letmein99"),
    ] {
        assert_eq!(redacted(text).0, text.replace(secret, "[redacted:password]"));
    }
    for kept in [
        "PWD=/home/ann/project",
        "the password: ask Ann",
        "--password-file x.txt",
        "DB_PASSWORD=$SECRET",
        "password = \"\"",
    ] {
        assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()), "{kept}");
    }
}

#[test]
fn ordinary_text_is_unchanged() {
    for kept in [
        "the token: see docs for it",
        "password: process.env.DB_PASSWORD",
        "secret = ${{ secrets.NPM_TOKEN }}",
        "token=<your-token-here>",
        "{ token: params[0], value: params[1] }",
        "token = cancellation_1.CancellationToken.is(x)",
        "primary key: customer_identifier",
        "sort key = created_at_descending",
        "sk-learn is a library",
        "commit 8f3a0c9d21be4f5a6b7c8d9e0f1a2b3c4d5e6f70",
        "key: Ctrl+Shift+P",
        "basic understanding of things is enough",
        "Basic Python/TypeScript helps",
        "| Private keys | `-----BEGIN PRIVATE KEY-----` | never |\n\nThe rest of the page.\n",
        "pub const STABLE_SECRET: _kind_3 = _kind_3::STABLE_SECRET;",
        "dot2_token: node.dot2_token,",
        "password = auth[2]",
        "scheme://[user[:password]@]host",
        "https://ann:ghp_xxxxxxxxxxxx@git.example/x.git",
    ] {
        assert_eq!(redacted(kept), (kept.to_owned(), Vec::new()), "{kept}");
    }
}

#[test]
fn a_key_without_an_end_is_redacted_as_far_as_it_looks_like_one() {
    let begin = format!("-----BEGIN RSA {}-----", "PRIVATE KEY");
    let lines = format!("{}\n{}", "a1B2".repeat(16), "c3D4".repeat(16));
    for (text, clean) in [
        (format!("{begin}\n{lines}"), "[redacted:private-key]"),
        (format!("{begin}\nProc-Type: 4,ENCRYPTED\n\n{lines}\nabc"), "[redacted:private-key]"),
        (format!("{begin}\\n{}\\n", lines.replace('\n', "\\n")), "[redacted:private-key]\\n"),
        (
            format!("`{begin}` or so\n{begin}\n{lines}\n\nAnd on."),
            &*format!("`{begin}` or so\n[redacted:private-key]\n\nAnd on."),
        ),
    ] {
        assert_eq!(redacted(&text).0, clean);
    }
}

#[test]
fn redacting_twice_changes_nothing() {
    let once = redacted(&format!("token: ghp_{} by a@b.io", "a1B2".repeat(9))).0;
    assert_eq!(redacted(&once), (once.clone(), Vec::new()));
}

#[test]
fn values_are_cleaned_throughout() {
    let mut value = serde_json::json!({"a": [{"b": "mail x@y.org"}], "n": 1});
    let mut found = Vec::new();
    Redactor::default().value(&mut value, &mut found);
    assert_eq!(value, serde_json::json!({"a": [{"b": "mail [redacted:email]"}], "n": 1}));
}

/// A value that contains another is replaced as a whole, in any order and position.
#[test]
fn a_longer_secret_is_redacted_before_a_shorter_one_in_it() {
    let secrets = ["Swordfish", "Swordfish-1932", "the Swordfish-1932 of Bea", "1932 of Bea!"];
    let whole = "[redacted:known-secret]";
    for turn in 0..secrets.len() {
        let mut secrets = secrets.map(str::to_owned);
        secrets.rotate_left(turn);
        let redactor = Redactor::new(secrets);
        let clean = |text: &str| redactor.text(text, &mut Vec::new());
        for (text, expected) in [
            ("a Swordfish b", format!("a {whole} b")),
            ("a Swordfish-1932 b", format!("a {whole} b")),
            ("a the Swordfish-1932 of Bea b", format!("a {whole} b")),
            ("Swordfish-1932,Swordfish", format!("{whole},{whole}")),
        ] {
            assert_eq!(clean(text), expected);
            let bytes = [text.as_bytes(), b"\xff"].concat();
            let (clean, _) = redactor.bytes(&bytes).expect("there is one");
            let clean = String::from_utf8_lossy(&clean).into_owned();
            assert!(!clean.contains("Sword") && !clean.contains("1932") && !clean.contains("Bea"), "{clean}");
        }
    }
}

#[test]
fn values_of_eight_characters_are_secrets_and_shorter_ones_are_words() {
    for (value, is_secret) in [("Aardvar", false), ("Aardvark", true), ("Äärdvärk", true), ("Aardvarks", true)] {
        let clean = Redactor::new([value.to_owned()]).text(&format!("an {value}!"), &mut Vec::new());
        assert_eq!(!clean.contains(value), is_secret, "{clean}");
    }
}

/// All occurrences are removed and counted, in text or other bytes.
#[test]
fn every_occurrence_is_redacted_and_counted() {
    let redactor = Redactor::new(["Swordfish-1932".to_owned()]);
    for tail in [&b""[..], b"\xff\xfe"] {
        for times in 1..=3 {
            let bytes = ["x Swordfish-1932".repeat(times).as_bytes(), tail].concat();
            let (clean, found) = redactor.bytes(&bytes).expect("there is one");
            assert!(!String::from_utf8_lossy(&clean).contains("Swordfish") && clean.ends_with(tail), "{clean:?}");
            assert_eq!(found.iter().map(|redaction| redaction.count).sum::<usize>(), times);
        }
    }
    assert_eq!(redactor.bytes(b"nothing \xff here"), None);
}

#[test]
fn keys_of_values_are_cleaned_too() {
    let redactor = Redactor::new(["Swordfish-1932".to_owned()]);
    let mut value = serde_json::json!({ "Swordfish-1932": { "list": ["Swordfish-1932", { "Swordfish-1932": 1 }] } });
    redactor.value(&mut value, &mut Vec::new());
    assert!(!value.to_string().contains("Swordfish"), "{value}");
}

#[test]
fn a_public_key_is_no_secret_whatever_its_name_ends_in() {
    let value = "b03f5f7f11d50a3a";
    for name in ["PublicKeyToken", "publicKeyToken", "public_key_token", "PUBLIC-KEY-TOKEN"] {
        for text in [format!("System.Xml, {name}={value}, Culture=neutral"), format!("{name}: \"{value}\"")] {
            assert_eq!(redacted(&text), (text.clone(), Vec::new()));
        }
    }
    // Only the name right before a value counts.
    for text in [format!("PublicKeyToken=null, token={value}x1"), format!("public key; api_key = {value}x1")] {
        assert_eq!(redacted(&text).1.len(), 1, "{text}");
    }
}
