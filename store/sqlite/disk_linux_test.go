package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// TestFullDisk fills disks of random small sizes in separate processes. The disk is a tmpfs if the system permits a
// process to mount one. In any case, a limit of the file size is tried as well: writes beyond it are first short and
// then fail.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for i := range times(t, 3) {
		dir := t.TempDir()
		for _, how := range []string{"tmpfs", "limit"} {
			cmd := childCommand(t.Context(), t, "fill", filepath.Join(dir, how), i)
			if how == "tmpfs" {
				cmd.SysProcAttr = ownMounts()
			}
			cmd.Env = append(cmd.Env, "TENON_STORE_DISK="+how)
			if err := os.Mkdir(filepath.Join(dir, how), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := cmd.CombinedOutput()
			if cannotMount(err, out) {
				t.Logf("no tmpfs here: %v %s", err, out)
				continue
			}
			if err != nil {
				t.Errorf("disk %d (%s): %v\n%s", i, how, err, out)
			}
		}
		_ = os.RemoveAll(dir) // a long test run would fill the disk
	}
}

// ownMounts returns attributes that give a process a separate mount namespace, without any rights outside of it.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
}

const noMount = "cannot mount"

func cannotMount(err error, out []byte) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) || strings.Contains(string(out), noMount)
}

// fullDisk is a store on a disk that is filled repeatedly.
type fullDisk struct {
	s      *Store
	random *rand.Rand
	acked  uint64 // number of the last event whose append succeeded
}

// fillChild fills a disk three times and frees space each time. It checks that the store has all acknowledged events.
func fillChild(dir string) error {
	seed, err := strconv.Atoi(os.Getenv(envSeed))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	disk, err := smallDisk(dir, os.Getenv("TENON_STORE_DISK"), 300+random.IntN(700))
	if err != nil {
		return err
	}
	ctx, path := context.Background(), filepath.Join(dir, "tenon.db")
	f := &fullDisk{random: random}
	if f.s, err = Open(ctx, Config{Path: path}); err != nil {
		return err
	}
	if err := f.s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r", Session: "s"}, Run: "r"}); err != nil {
		return err
	}
	for round := range 3 {
		for _, step := range []func() error{f.fill, f.fillWhole, f.probeFull, disk.grow} {
			if err := step(); err != nil {
				return err
			}
		}
		f.s.probe.until = time.Time{}
		if err := f.s.Probe(ctx); err != nil && !strings.Contains(err.Error(), "bytes left") { // a tmpfs of less than 1 MiB always has too little space
			return fmt.Errorf("RP-24: the probe of a disk with room: %w", err)
		}
		if round == 1 { // the process begins again
			if err := f.s.Close(); err != nil {
				return err
			}
			if f.s, err = Open(ctx, Config{Path: path}); err != nil {
				return err
			}
		}
		if err := f.appendAgain(); err != nil {
			return err
		}
	}
	var sound string
	if err := f.s.read.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		return fmt.Errorf("the file is %s, %w", sound, err)
	}
	return f.s.Close()
}

// fill appends events until three appends have failed. An event whose append failed may still be stored; an
// acknowledged one must be.
func (f *fullDisk) fill() error {
	full, seen := 0, uint64(0)
	for i := 0; full < 3 && i < 5_000; i++ {
		last, err := readNumbered(f.s, seen)
		if err != nil {
			return fmt.Errorf("reading from a full disk: %w", err)
		}
		if last < f.acked {
			return fmt.Errorf("%d events of %d are there", last, f.acked)
		}
		n := 1 + f.random.IntN(2)
		err = f.s.Append(context.Background(), store.Append{Run: "r", Events: numbered(int(last)+1, n, f.random.IntN(60_000))})
		switch {
		case err == nil:
			f.acked, seen = last+uint64(n), last
		case tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "free s"):
			return fmt.Errorf("a full disk: %w", err)
		default:
			full++
			seen = 0 // then everything is read while the disk is full
		}
	}
	if full == 0 {
		return errors.New("the disk never was full")
	}
	return nil
}

// fillWhole appends short events until none fits.
func (f *fullDisk) fillWhole() error {
	for full := 0; full < 3; {
		last, err := readNumbered(f.s, 0)
		if err != nil {
			return err
		}
		full++
		if err := f.s.Append(context.Background(), store.Append{Run: "r", Events: numbered(int(last)+1, 1, 10)}); err == nil {
			f.acked, full = last+1, 0
		}
	}
	return nil
}

// probeFull checks that the probe of a full disk fails and that failed writes are counted.
func (f *fullDisk) probeFull() error {
	f.s.probe.until = time.Time{}
	if err := f.s.Probe(context.Background()); tenon.ErrorCode(err) != tenon.CodeStore {
		return fmt.Errorf("RP-24: the probe of a full disk says %w", err)
	}
	if f.s.Usage().FailedWrites == 0 {
		return errors.New("RP-24: no failed write was counted")
	}
	return nil
}

// appendAgain checks that all acknowledged events are stored, and appends another event.
func (f *fullDisk) appendAgain() error {
	last, err := readNumbered(f.s, 0)
	if err != nil || last < f.acked {
		return fmt.Errorf("%d events of %d are there, %w", last, f.acked, err)
	}
	if err := f.s.Append(context.Background(), store.Append{Run: "r", Events: numbered(int(last)+1, 1, 100)}); err != nil {
		return fmt.Errorf("after there is room: %w", err)
	}
	f.acked = last + 1
	return nil
}

// disk is a disk that can be filled and enlarged.
type disk struct {
	dir, how string
	size     int // KiB
}

func smallDisk(dir, how string, size int) (*disk, error) {
	d := &disk{dir, how, size}
	if how == "tmpfs" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", size)); err != nil {
			return nil, fmt.Errorf(noMount+": %w", err)
		}
		return d, nil
	}
	return d, d.limit()
}

func (d *disk) limit() error {
	bytes := uint64(d.size) << 10
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes + bytes%4096/3, Max: 1 << 40})
}

func (d *disk) grow() error {
	d.size = 2*d.size + 500 // the log and its copy in the file need space
	if d.how == "tmpfs" {
		return syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dk", d.size))
	}
	return d.limit()
}

// TestReadOnly opens a store in a place that has become read-only. It returns a clear error, and no byte changes.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, filepath.Join(dir, "tenon.db"), migrations)
	if err := s.PutSession(t.Context(), tenon.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := Open(t.Context(), Config{Path: filepath.Join(dir, "log.db"), ShortLived: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.closeDBs() }) // the process does not end here
	if err := errors.Join(log.PutSession(t.Context(), tenon.Session{ID: "s"}), log.Close()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "log.db-wal")); err != nil || info.Size() == 0 {
		t.Fatalf("no log is left: %v", err)
	}
	cmd := childCommand(t.Context(), t, "refuse", filepath.Join(dir, "tenon.db"), 0)
	cmd.SysProcAttr = ownMounts()
	out, err := cmd.CombinedOutput()
	if cannotMount(err, out) {
		t.Skipf("no mounts of its own for a process here: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// refuseChild makes the folder of the store read-only for its own process, and opens the existing store and a new one.
func refuseChild(path string) error {
	dir := filepath.Dir(path)
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf(noMount+": %w", err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf(noMount+": %w", err)
	}
	for _, p := range []string{path, filepath.Join(dir, "new.db"), filepath.Join(dir, "folder", "new.db")} {
		s, err := Open(context.Background(), Config{Path: p})
		if err == nil {
			_ = s.Close()
			return fmt.Errorf("%s was opened", p)
		}
		if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), "--home") {
			return fmt.Errorf("%s: the error says not enough: %w", p, err)
		}
	}
	for _, p := range []string{path, filepath.Join(dir, "log.db")} {
		if err := readChild(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if s, err := Open(context.Background(), Config{Path: filepath.Join(dir, "new.db"), ReadOnly: true}); err == nil {
		_ = s.Close()
		return errors.New("a store that is not there was opened")
	}
	return nil
}

// readChild reads a store on which writing is impossible, and tries to write.
func readChild(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, ReadOnly: true, ShortLived: true})
	if err != nil {
		return err
	}
	list, err := s.Sessions(ctx, store.SessionFilter{})
	if err != nil || len(list) != 1 || list[0].ID != "s" {
		return fmt.Errorf("sessions %+v, %w", list, err)
	}
	if held, err := s.Held("r"); err != nil || held {
		return fmt.Errorf("held %t, %w", held, err)
	}
	if err := s.PutSession(ctx, tenon.Session{ID: "t"}); tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "--home") {
		return fmt.Errorf("a write: %w", err)
	}
	if _, _, err := s.Acquire("r"); tenon.ErrorCode(err) != tenon.CodeStore {
		return fmt.Errorf("a lease: %w", err)
	}
	return s.Close()
}
