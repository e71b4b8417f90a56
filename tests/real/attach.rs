//! Files that go with a message, as they reach the model.

use serde_json::json;

use crate::support::{World, call, creed, plays};

/// A red dot.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T', 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0,
    0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn images_are_shown_and_other_files_may_be_opened() {
    let mut outside = String::new();
    let world = World::new(|root| {
        let place = root.join("../brief.txt").components().collect::<std::path::PathBuf>();
        let view = |path: &str| call("view", &json!({ "path": path }));
        std::fs::write(&place, "The tide is high.\n").expect("a file");
        outside = place.canonicalize().expect("it is there").display().to_string();
        let other = root.join("../other.txt");
        std::fs::write(&other, "Nobody attached this.\n").expect("a file");
        let other = other.canonicalize().expect("it is there").display().to_string();
        [plays("ada", &[&view(&outside), &view(&other), "say:Seen."])]
    });
    std::fs::write(world.repo.root().join("dot.png"), PNG).expect("a file");
    let files = ["--attach", "dot.png", "--attach", &outside, "--attach", ".squad/team.md"];
    let ended = world
        .run(&[&["orchestrate", "--json", "--agent", "ada", "--permissions", "deny"], &files[..], &["Look"]].concat());
    assert_eq!(ended.code, Some(0), "{ended}");
    let requests = world.requests_with(creed("ada"));
    let first = &requests[0];
    for text in [&format!("* {outside} (2 lines)"), "team.md (", "data:image/png;base64,"] {
        assert!(first.contains(text), "{text}: {first}");
    }
    // Reading outside the project is refused, but for what the user has passed.
    let last = requests.last().expect("requests");
    assert!(last.contains("The tide is high."), "{last}");
    assert!(!last.contains("Nobody attached this."), "{last}");
    world.assert_left_in_order(&ended);
}
