package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	peak, stop := watchPeak(cmd.Process.Pid)
	s, err := readClock(cmd.Process.Pid, begun)
	stop()
	if werr := cmd.Wait(); werr != nil {
		return s, fmt.Errorf("%w: %s", werr, bytes.TrimSpace(said.Bytes()))
	}
	if err != nil {
		return s, err
	}
	s.Peak, s.Out = peak.Load(), out.String()
	return s, nil
}

// watchPeak reads the peak resident memory of a process every 500 µs (VmHWM of proc_pid_status(5)), until the process
// ends or stop is called, which waits for the last read.
func watchPeak(pid int) (peak *atomic.Int64, stop func()) {
	peak = new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, after, found := strings.Cut(string(b), "VmHWM:")
			if err != nil || !found { // a process that ended has no memory
				return
			}
			if kb, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64); err == nil {
				peak.Store(kb * 1024)
			}
			time.Sleep(500 * time.Microsecond)
		}
	})
	return peak, func() { cancel(); wg.Wait() }
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
