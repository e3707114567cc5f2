//! Those who act in the models. Each keeps to the program of the host (`freehold-store`): what it
//! asks, in which order, what it holds meanwhile, and where it may die.

pub mod cascader;
pub mod chooser;
pub mod cleaner;
pub mod closer;
pub mod executor;
pub mod maker;
pub mod operator;
pub mod outsider;
pub mod person;
pub mod recovery;
pub mod rescuer;
pub mod restorer;
pub mod sender;
pub mod starter;
pub mod steward;
pub mod sweeper;
pub mod time;
pub mod turner;
pub mod worker;

pub use cascader::{Cascader, Driven, Driving};
pub use chooser::{Choice, Chooser};
pub use cleaner::Cleaner;
pub use closer::Closer;
pub use executor::{Executor, Hands};
pub use maker::{Maker, Recreator, Returner};
pub use operator::Operator;
pub use outsider::{Calendar, Deed, Outsider};
pub use person::Person;
pub use recovery::Recovery;
pub use rescuer::Rescuer;
pub use restorer::Restorer;
pub use sender::{Client, Pulse, Reporter, Sender};
pub use starter::Starter;
pub use steward::Steward;
pub use sweeper::Sweeper;
pub use time::Clock;
pub use turner::{Keeper, Turner};
pub use worker::Worker;
