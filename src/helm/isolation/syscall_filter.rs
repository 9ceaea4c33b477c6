//! Restricts system calls: a filter for this process and all its children.
//!
//! In: true if the program is statically linked. Out: the filter is set. Calls that a renderer of
//! text never makes are denied with a permission error: sockets of any kind, access to other
//! processes and signals to them, leaving the process group, mounts and namespaces, rings that
//! carry calls past a filter, and changes of the owner, mode or times of files, which Landlock does
//! not cover. Calls that are newer than this list are denied as an older kernel would, so that a
//! new call opens no way out.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

/// The newest call that was reviewed. Later numbers are the same on every architecture; those of
/// other ABIs on this processor are larger still.
const NEWEST: c_long = libc::SYS_set_mempolicy_home_node;

/// Calls that helm does not need.
#[rustfmt::skip]
const REFUSED: &[c_long] = &[
    // Network and other sockets.
    libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
    libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg,
    // Calls that run asynchronously, where no filter sees them.
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    // Other processes, and a life beyond the process group that is killed after the run.
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise, libc::SYS_kcmp,
    libc::SYS_pidfd_open, libc::SYS_pidfd_getfd, libc::SYS_pidfd_send_signal, libc::SYS_tkill, libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo, libc::SYS_setsid, libc::SYS_setpgid, libc::SYS_setpriority, libc::SYS_ioprio_set,
    libc::SYS_migrate_pages, libc::SYS_move_pages,
    // Shared memory and message queues.
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_semget, libc::SYS_msgget, libc::SYS_mq_open,
    // Namespaces and mounts.
    libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount, libc::SYS_umount2, libc::SYS_move_mount, libc::SYS_open_tree, libc::SYS_fsopen,
    libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr, libc::SYS_pivot_root, libc::SYS_chroot,
    // File attributes, which Landlock does not restrict.
    libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat, libc::SYS_truncate,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr,
    libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at, libc::SYS_quotactl, libc::SYS_quotactl_fd, libc::SYS_fanotify_init,
    // The machine, and parts of the kernel that had vulnerabilities.
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    libc::SYS_personality, libc::SYS_acct, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_reboot, libc::SYS_syslog, libc::SYS_vhangup,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_kexec_load, KEXEC_FILE_LOAD,
    libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Loads a kernel from a file. The crate has no name for it on arm64 with musl.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: c_long = libc::SYS_kexec_file_load;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: c_long = 294;

/// Older variants that only some architectures have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[c_long] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat,
    libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Calls that create a process. Threads are created by `clone`, which is filtered by its flags.
#[cfg(target_arch = "x86_64")]
const FORKS: &[c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[c_long] = &[];

/// Flags by which a new process gets namespaces of its own.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Sets the filter for this process. A statically linked program (`alone`) starts no other one, so
/// creating processes is denied as well.
pub(super) fn install_filters(alone: bool) -> Result<(), Error> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    apply_filter(&newer())?;
    apply_filter(&listed(alone, u64::from(own.unsigned_abs()))?)
}

/// The filter with the listed calls, and with the calls that are denied for some arguments only.
fn listed(alone: bool, own: u64) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        REFUSED.iter().chain(OLDER).map(|call| (*call, Vec::new())).collect();
    let argument = |at, op, value| SeccompCondition::new(at, SeccompCmpArgLen::Dword, op, value);
    let another = || argument(0, SeccompCmpOp::Ne, own);
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        rules.insert(call, vec![SeccompRule::new(vec![another()?])?]);
    }
    // Zero means the process itself.
    let not_zero = argument(0, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![another()?, not_zero])?]);
    let mut clones = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clones.push(SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
    }
    if alone {
        let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
        clones.push(SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(thread), 0)?])?);
        rules.extend(FORKS.iter().map(|call| (*call, Vec::new())));
    }
    rules.insert(libc::SYS_clone, clones);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// The filter that denies calls as a kernel that does not know them: all newer calls, and
/// `clone3`, whose flags lie in memory that a filter cannot read. Libraries then fall back to
/// older calls.
fn newer() -> BpfProgram {
    let step = |code: u32, k: u32, jt: u8, jf: u8| sock_filter { code: code as u16, jt, jf, k };
    let number = |call: c_long| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, number(NEWEST), 2, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number(libc::SYS_clone3), 1, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(), 0, 0),
    ]
}
