//! Ids, 16 bytes each (D-24): a canonical UUID is itself, any other string a digest made at the
//! edge. The kernel compares ids and never reads what they stand for.

use core::fmt;

/// What all id types have in common.
pub trait Id: Copy {
    /// Of what kind.
    const KIND: Kind;
    /// The id with these 16 bytes.
    fn from_bits(bits: u128) -> Self;
    /// Its 16 bytes.
    fn bits(self) -> u128;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        /// What an id is the id of. The digest of a string covers the kind's code (D-24), so the
        /// same text names different things under different kinds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The stable code of the kind.
            pub const fn code(self) -> &'static str {
                match self { $(Kind::$name => $code,)* }
            }
        }

        $(ids!(@one $(#[$doc])* $name);)*
    };
    (@one $(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u128);

        impl $name {
            /// The kind that this id belongs to.
            pub const KIND: Kind = Kind::$name;
        }

        impl Id for $name {
            const KIND: Kind = Kind::$name;
            fn from_bits(bits: u128) -> Self {
                $name(bits)
            }
            fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{:x}", Kind::$name.code(), self.0)
            }
        }
    };
}

ids! {
    /// A board or project that groups tasks (D-1).
    WorkspaceId = "workspace";
    /// A task (D-2).
    TaskId = "task";
    /// An environment, the task-owned place where agents work (D-3).
    EnvironmentId = "environment";
    /// A repository row of an environment (D-4).
    RepoId = "environment_repo";
    /// One try to make a worktree (D-5).
    AttemptId = "attempt";
    /// A session (D-6).
    SessionId = "session";
    /// A turn of a session (D-8).
    TurnId = "turn";
    /// An input to a session (D-9).
    InputId = "input";
    /// A durable runtime handle (D-11).
    RuntimeId = "runtime";
    /// A cleanup job (C-1).
    JobId = "job";
    /// The part of a job that belongs to one root, claimed as a whole (C-3).
    JobRootId = "job_root";
    /// One resource of a job's snapshot (B-4).
    ResourceId = "resource";
    /// A permitted removal (D-22).
    RemovalId = "removal";
    /// A trash row (D-20).
    TrashId = "trash";
    /// A salvage entry (D-20).
    SalvageId = "salvage";
    /// One running host process; fresh for every process (D-15).
    InstanceId = "instance";
    /// A machine's name (D-15, D-18).
    HostId = "host";
    /// A managed root (D-18).
    RootId = "root";
    /// The store itself (D-18).
    StoreId = "store";
    /// A request of the host (D-19).
    RequestId = "request";
    /// A digest of a command's content (D-19, C-12).
    ContentHash = "content";
    /// A task lifecycle operation with the host's id (B-1).
    OperationId = "operation";
    /// A person or a named system authority.
    ActorId = "actor";
    /// A fresh random value that proves a claim (C-3).
    Token = "token";
    /// A git repository, as the host names it.
    RepositoryId = "repository";
    /// A branch slug; with environment and repository it names a slot (D-4).
    Slug = "slug";
    /// A real path (W: compared by what it is; the edge resolves links before it makes this id).
    PathId = "path";
    /// A branch name.
    BranchId = "branch";
    /// A worktree's lasting identity: the stamp of store, root and token (W-2).
    WorktreeId = "worktree";
    /// A commit's object id.
    CommitId = "commit";
    /// The handle of a container or sandbox (D-3).
    HandleId = "handle";
    /// A managed identity of any kind, as the identities table stores it (D-14).
    AnyId = "any";
}

/// Derives one id from two others, for rows that the kernel makes itself (snapshot resources,
/// roots of a job, tokens of a takeover). Pure, so the same decision makes the same ids.
pub const fn derive(a: u128, b: u128) -> u128 {
    // Two rounds of a 64-bit mixer over each half; it only has to spread, not to resist anyone:
    // both inputs are fresh tokens or ids that the caller could not choose freely.
    let (a_hi, a_lo) = ((a >> 64) as u64, a as u64);
    let (b_hi, b_lo) = ((b >> 64) as u64, b as u64);
    let hi = mix(a_hi ^ mix(b_lo ^ 0x9e37_79b9_7f4a_7c15));
    let lo = mix(a_lo ^ mix(b_hi ^ 0xc2b2_ae3d_27d4_eb4f) ^ hi);
    // Version nibble 8 (custom) and the standard variant: a canonical UUID, so it is itself on
    // disk and needs no name (D-24).
    let raw = ((hi as u128) << 64) | lo as u128;
    (raw & !(0xf << 76) & !(0x3 << 62)) | (0x8 << 76) | (0x2 << 62)
}

const fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_differ_and_are_canonical_uuids() {
        let ids = [derive(1, 2), derive(2, 1), derive(1, 3), derive(0, 0), derive(1 << 64, 2)];
        for (i, a) in ids.iter().enumerate() {
            assert_eq!((a >> 76) & 0xf, 8);
            assert_eq!((a >> 62) & 3, 2);
            for b in &ids[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }
}
