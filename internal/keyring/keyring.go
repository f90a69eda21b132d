// Package keyring accesses the secret store of the operating system: the Keychain of macOS, the Credential
// Manager of Windows, or the Secret Service of a Linux desktop.
//
// Packages that store secrets for a person use it, such as the sign-ins of servers/oauth. It wraps the one
// module that supports these stores, and avoids two of its problems. First, the module would start a session
// bus if there is none; here, a machine without a bus has no keyring. Second, a store may wait without limit
// for a person to unlock it; here, the wait has a limit.
//
// Many machines have no keyring: servers, containers, ssh sessions. Callers then store secrets elsewhere. A
// keyring is never required.
package keyring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/zalando/go-keyring"
)

// patience limits how long a person may take to unlock the keyring.
const patience = 60 * time.Second

// Off is the value of TENON_KEYRING that disables the keyring.
const Off = "off"

// Ring is the keyring of the system. The zero value is ready to use.
type Ring struct{}

// Open returns the keyring of the system. It returns nil if there is none or if TENON_KEYRING is off. It does
// not access the keyring.
func Open(lookup func(string) (string, bool)) *Ring {
	if v, _ := lookup("TENON_KEYRING"); v == Off {
		return nil
	}
	switch runtime.GOOS {
	case "darwin", "windows":
		return &Ring{}
	}
	if _, ok := lookup("DBUS_SESSION_BUS_ADDRESS"); ok {
		return &Ring{}
	}
	if dir, ok := lookup("XDG_RUNTIME_DIR"); ok && isThere(filepath.Join(dir, "bus")) ||
		isThere("/run/user/"+strconv.Itoa(os.Getuid())+"/bus") {
		return &Ring{}
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Get returns a value, or "" if there is none.
func (*Ring) Get(service, user string) (string, error) {
	return within(func() (string, error) {
		v, err := keyring.Get(service, user)
		if errors.Is(err, keyring.ErrNotFound) {
			return "", nil
		}
		return v, err
	})
}

// Set stores a value.
func (*Ring) Set(service, user, value string) error {
	_, err := within(func() (string, error) { return "", keyring.Set(service, user, value) })
	return err
}

// Delete removes a value. It is not an error if there is none.
func (*Ring) Delete(service, user string) error {
	_, err := within(func() (string, error) {
		if err := keyring.Delete(service, user); !errors.Is(err, keyring.ErrNotFound) {
			return "", err
		}
		return "", nil
	})
	return err
}

// within limits the time of f. The stores cannot be cancelled, so a call that waits for a person ends with
// that person's action or with the process.
func within(f func() (string, error)) (string, error) {
	type result struct {
		value string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(patience):
		return "", fmt.Errorf("the keyring did not answer within %s; unlock it", patience)
	}
}
