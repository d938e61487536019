//! Programs for seccomp(2), assembled from rules.
//!
//! The kernel compiles every instruction of a program for each command anew, so programs are
//! short: all rules make one, and calls with the same answer share it.

use libc::sock_filter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterAnswer {
    /// The call fails with this error.
    Error(libc::c_int),
    /// The calling thread waits until the listener has answered the call.
    Notify,
}

/// A condition on an argument, of which the kernel reads 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Is(u32),
    IsNot(u32),
    /// At least one of these bits is set.
    Has(u32),
    /// The bits of the mask, which comes first, are these.
    Masked(u32, u32),
}

/// A filter that grows by rules, of which the first that fits a call decides. Calls that none
/// fits pass.
#[derive(Debug)]
pub(super) struct Filter(Vec<sock_filter>);

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

/// This machine, as in `linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const THIS_MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_MACHINE: u32 = 0xc000_00b7;

/// The bit by which x86_64 marks calls with 32-bit pointers, which do the same under other numbers.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Maximum number of calls in one [`Filter::all`], because a jump is a byte long.
const CALLS: usize = 250;

impl Filter {
    /// Creates a filter that ends processes which make calls of another machine (as of 32-bit
    /// programs), and answers calls with 32-bit pointers as unknown, as most kernels do.
    pub(super) fn new() -> Self {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "other machines have one kind of pointers")
        )]
        let mut program = vec![
            load(MACHINE),
            jump(libc::BPF_JEQ, THIS_MACHINE, 1, 0),
            end(libc::SECCOMP_RET_KILL_PROCESS),
            load(NUMBER),
        ];
        #[cfg(target_arch = "x86_64")]
        program.extend([
            jump(libc::BPF_JGE, X32, 0, 1),
            end(FilterAnswer::Error(libc::ENOSYS).value()),
        ]);
        Self(program)
    }

    /// Gives this answer to these calls, whatever their arguments.
    pub(super) fn all(&mut self, calls: &[libc::c_long], answer: FilterAnswer) {
        debug_assert!(calls.len() <= CALLS);
        for (index, call) in calls.iter().enumerate() {
            // To the answer behind the last of them.
            let ahead = steps(calls.len() - 1 - index);
            let miss = u8::from(ahead == 0);
            self.0.push(jump(libc::BPF_JEQ, number(*call), ahead, miss));
        }
        if !calls.is_empty() {
            self.0.push(end(answer.value()));
        }
    }

    /// Gives this answer to a call whose arguments pass all tests.
    pub(super) fn when(&mut self, call: libc::c_long, tests: &[(u32, Test)], answer: FilterAnswer) {
        let mut block = Vec::new();
        for (argument, test) in tests {
            block.push(load(ARGUMENTS + ARGUMENT_BYTES * argument));
            if let Test::Masked(mask, _) = test {
                block.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, *mask));
            }
            // Where to jump to is known when the block is complete.
            block.push(match test {
                Test::Is(value) | Test::Masked(_, value) => jump(libc::BPF_JEQ, *value, 0, 1),
                Test::IsNot(value) => jump(libc::BPF_JEQ, *value, 1, 0),
                Test::Has(bits) => jump(libc::BPF_JSET, *bits, 0, 1),
            });
        }
        block.push(end(answer.value()));
        let length = block.len();
        for (index, instruction) in block.iter_mut().enumerate() {
            let behind = steps(length - 1 - index);
            instruction.jt *= behind;
            instruction.jf *= behind;
        }
        // The number stands in the accumulator again.
        block.push(load(NUMBER));
        self.0
            .push(jump(libc::BPF_JEQ, number(call), 0, steps(block.len())));
        self.0.extend(block);
    }

    /// Gives this answer to this call and all later additions to the kernel.
    pub(super) fn from(&mut self, call: libc::c_long, answer: FilterAnswer) {
        self.0.push(jump(libc::BPF_JGE, number(call), 0, 1));
        self.0.push(end(answer.value()));
    }

    pub(super) fn finish(mut self) -> Vec<sock_filter> {
        self.0.push(end(libc::SECCOMP_RET_ALLOW));
        self.0
    }
}

impl FilterAnswer {
    fn value(self) -> u32 {
        match self {
            Self::Error(error) => libc::SECCOMP_RET_ERRNO | error.unsigned_abs(),
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("the numbers of system calls are small")
}

fn steps(count: usize) -> u8 {
    u8::try_from(count).expect("blocks are shorter than a jump")
}

fn load(offset: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn end(value: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, value)
}

fn step(code: u32, k: u32) -> sock_filter {
    let code = u16::try_from(code).expect("codes have 16 bits");
    let (jt, jf) = (0, 0);
    sock_filter { code, jt, jf, k }
}

fn jump(kind: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    let step = step(libc::BPF_JMP | kind | libc::BPF_K, k);
    sock_filter { jt, jf, ..step }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter program on a call, as the kernel does.
    fn run(program: &[sock_filter], call: u32, arguments: [u32; 2]) -> u32 {
        let words = |offset| match offset {
            NUMBER => call,
            MACHINE => THIS_MACHINE,
            16 => arguments[0],
            24 => arguments[1],
            _ => panic!("reads {offset}"),
        };
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let ways = [usize::from(jf), usize::from(jt)];
            at += 1;
            match u32::from(code) {
                0x20 => accumulator = words(k),
                0x54 => accumulator &= k,
                0x15 => at += ways[usize::from(accumulator == k)],
                0x35 => at += ways[usize::from(accumulator >= k)],
                0x45 => at += ways[usize::from(accumulator & k != 0)],
                0x06 => return k,
                _ => panic!("code {code:x}"),
            }
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let mut filter = Filter::new();
        let error = |number| FilterAnswer::Error(number);
        filter.when(1, &[(0, Test::Is(7)), (1, Test::Masked(0xf, 2))], error(1));
        filter.when(1, &[(0, Test::IsNot(7)), (0, Test::IsNot(8))], error(2));
        filter.when(2, &[(1, Test::Has(0x30))], error(3));
        filter.all(&[3, 1, 4], error(4));
        filter.all(&[5], FilterAnswer::Notify);
        filter.all(&[], error(9));
        filter.from(70, error(5));
        let program = filter.finish();
        let errno = |number| libc::SECCOMP_RET_ERRNO | number;
        for (call, arguments, expected) in [
            (1, [7, 0x12], errno(1)),
            (1, [7, 0x13], errno(4)),
            (1, [9, 0], errno(2)),
            (1, [8, 0], errno(4)),
            (2, [0, 0x10], errno(3)),
            (2, [0, 0x4f], libc::SECCOMP_RET_ALLOW),
            (3, [0, 0], errno(4)),
            (4, [0, 0], errno(4)),
            (5, [0, 0], libc::SECCOMP_RET_USER_NOTIF),
            (6, [0, 0], libc::SECCOMP_RET_ALLOW),
            (69, [0, 0], libc::SECCOMP_RET_ALLOW),
            (70, [0, 0], errno(5)),
            (71, [0, 0], errno(5)),
            #[cfg(target_arch = "x86_64")]
            (X32 | 6, [0, 0], errno(38)),
        ] {
            let said = run(&program, call, arguments);
            assert_eq!(said, expected, "{call} {arguments:?}");
        }
    }
}
