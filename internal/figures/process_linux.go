package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

// spend runs a command to its end and returns what its process alone used. What
// the kernel reports about a process that was waited for includes the children
// that it waited for itself, so the CPU clock of the process is read after it has
// ended and before it is waited for.
func spend(cmd *exec.Cmd) (spent, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return spent{}, err
	}
	s, err := readClock(cmd.Process.Pid, begun)
	if werr := cmd.Wait(); werr != nil {
		return s, fmt.Errorf("%w: %s", werr, bytes.TrimSpace(said.Bytes()))
	}
	if err != nil {
		return s, err
	}
	ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return s, errors.New("the system does not say what a process used")
	}
	s.Peak, s.Out = ru.Maxrss*1024, out.String()
	return s, nil
}

// readClock waits until a child of ours has ended, without taking its status,
// and reads its CPU clock.
func readClock(pid int, begun time.Time) (spent, error) {
	const (
		pPID    = 1 // idtype_t P_PID
		wnowait = 0x01000000
	)
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid), uintptr(unsafe.Pointer(&info[0])),
			syscall.WEXITED|wnowait, 0, 0)
		if errno == 0 {
			break
		}
		if errno != syscall.EINTR {
			return spent{}, fmt.Errorf("waiting for process %d: %w", pid, errno)
		}
	}
	s := spent{Wall: time.Since(begun)}
	var err error
	s.CPU, err = clockOf(pid)
	return s, err
}

// clockOf reads the CPU clock of a process: the time of all its threads.
func clockOf(pid int) (time.Duration, error) {
	const cpuClockSched = 2 // the clock of all threads, in nanoseconds
	var ts syscall.Timespec
	clock := int32(^pid)<<3 | cpuClockSched
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}
