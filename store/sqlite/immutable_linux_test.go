package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenonhq/tenon"
)

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// setImmutable sets or clears the file attribute that chattr +i sets.
func setImmutable(path string, on bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	flags &^= immutableFlag
	if on {
		flags |= immutableFlag
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// TestImmutable probes a store whose file or log cannot be changed, not even by root.
func TestImmutable(t *testing.T) {
	for _, end := range []string{"", "-wal"} {
		t.Run("RP-24_immutable"+end, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tenon.db")
			s, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := s.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := setImmutable(path+end, true); err != nil {
				t.Skipf("chattr +i is not possible here: %v", err)
			}
			s.probe.until = time.Time{} // the last result is cached for a second
			err = s.Probe(t.Context())
			if uerr := setImmutable(path+end, false); uerr != nil {
				t.Fatal(uerr)
			}
			if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "check") {
				t.Errorf("the probe says %v", err)
			}
			s.probe.until = time.Time{}
			if err := s.Probe(t.Context()); err != nil {
				t.Errorf("the file can be changed again: %v", err)
			}
		})
	}
}
