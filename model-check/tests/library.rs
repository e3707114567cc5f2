//! A host's own actors and properties: the example, and what it shows.

#[path = "../examples/own_actor.rs"]
#[allow(dead_code)]
mod own_actor;

use freehold_model_check::{Limits, Model, Story, explore};

#[test]
fn a_hosts_own_actor_passes() {
    let system = own_actor::system(true);
    let explored = explore(&system, Limits::default());
    assert!(explored.passed(), "{:?}", Story::of(system.name(), &[], &explored).map(|s| s.text()));
    assert!(explored.states > 10);
}

#[test]
fn a_hosts_wrong_actor_is_caught_by_the_hosts_own_property() {
    let system = own_actor::system(false);
    let explored = explore(&system, Limits::default());
    let found = explored.broken.first().expect("a starred session is archived");
    assert_eq!(found.broken.property, "starred stays");
    let text = Story::of(system.name(), &[], &explored).expect("it has a story").text();
    assert!(text.contains("the janitor archives session 0 (accepted)"), "{text}");
    assert!(text.contains("a person stars session 0 (accepted)"), "{text}");
}

#[test]
fn the_library_is_used_without_the_catalogue() {
    let system = own_actor::system(true);
    let mut edges = Vec::new();
    system.edges(system.initial(), &mut edges);
    assert!(!edges.is_empty());
}
