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

// spend runs a command to its end and returns the usage of only its own process. The usage that the kernel
// reports after a wait includes children that the process waited for. Therefore the CPU clock of the process
// is read after its end and before the wait.
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
		return s, errors.New("the system reports no resource usage of a process")
	}
	s.Peak, s.Out = ru.Maxrss*1024, out.String()
	return s, nil
}

// readClock waits until a child has ended, without reaping it, and reads its CPU clock.
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

// clockOf reads the CPU clock of a process, which includes all its threads.
func clockOf(pid int) (time.Duration, error) {
	const cpuClockSched = 2 // the clock of all threads, in nanoseconds
	var ts syscall.Timespec
	clock := int32(^pid)<<3 | cpuClockSched
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}
