package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// leases are locks on single bytes of one file. The byte of a run is a hash of its id. A lock belongs to the open
// file (open file description locks, fcntl(2)), so two stores in one process exclude each other. own contains the
// leases of this store.
type leases struct {
	mu  sync.Mutex
	f   *os.File
	own map[int64]struct{}
}

func openLeases(path string) (*leases, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &leases{f: f, own: map[int64]struct{}{}}, nil
}

func leaseByte(run string) int64 {
	sum := sha256.Sum256([]byte(run))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 2)
}

func (l *leases) fcntl(cmd int, kind int16, at int64) (unix.Flock_t, error) {
	lock := unix.Flock_t{Type: kind, Start: at, Len: 1}
	for {
		err := unix.FcntlFlock(l.f.Fd(), cmd, &lock)
		if !errors.Is(err, unix.EINTR) {
			return lock, err
		}
	}
}

func (l *leases) acquire(run string) (release func(), ok bool, err error) {
	at := leaseByte(run)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, mine := l.own[at]; mine {
		return nil, false, nil
	}
	if _, err := l.fcntl(unix.F_OFD_SETLK, unix.F_WRLCK, at); err != nil {
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, false, nil
		}
		return nil, false, err
	}
	l.own[at] = struct{}{}
	return func() { l.release(at) }, true, nil
}

func (l *leases) release(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, mine := l.own[at]; mine {
		delete(l.own, at)
		_, _ = l.fcntl(unix.F_OFD_SETLK, unix.F_UNLCK, at) // fails only after close, which has freed it
	}
}

func (l *leases) held(run string) (bool, error) {
	at := leaseByte(run)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, mine := l.own[at]; mine {
		return true, nil
	}
	lock, err := l.fcntl(unix.F_OFD_GETLK, unix.F_WRLCK, at)
	return err == nil && lock.Type != unix.F_UNLCK, err
}

// holder returns the process that holds a lease, or 0 if it is unknown. The lock itself names no process, because it
// belongs to an open file. But /proc lists the locks of the open files of each process of the same user
// (proc_pid_fdinfo(5)).
func (l *leases) holder(run string) (pid int) {
	info, err := l.f.Stat()
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	file, at := fmt.Sprintf(":%d", stat.Ino), strconv.FormatInt(leaseByte(run), 10)
	list, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // the pattern is valid
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended, or belongs to somebody else
		}
		for line := range strings.Lines(string(b)) {
			// lock: 1: OFDLCK ADVISORY WRITE -1 fe:00:INODE FIRST LAST
			f := strings.Fields(line)
			if len(f) != 9 || f[0] != "lock:" || f[4] != "WRITE" || !strings.HasSuffix(f[6], file) || f[7] != at {
				continue
			}
			if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
				return pid
			}
		}
	}
	return 0
}

// busy reports whether another store holds any lease, other than the lease of a migration.
func (l *leases) busy() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := leaseByte(migrationName)
	for _, part := range [][2]int64{{0, at}, {at + 1, 0}} { // length 0 is up to the end
		if part[0] == 0 && part[1] == 0 {
			continue
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: part[0], Len: part[1]}
		if err := unix.FcntlFlock(l.f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
			return false, err
		}
		if lock.Type != unix.F_UNLCK {
			return true, nil
		}
	}
	return false, nil
}

// close releases all leases.
func (l *leases) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.own)
	return l.f.Close()
}
