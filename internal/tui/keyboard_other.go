//go:build !linux

package tui

import (
	"errors"
	"os"
)

// reopen is not possible: kqueue does not poll terminals on macOS, and Windows has no such files.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// There is no keyboard, so these are not called.
func stopProcess() error    { return errors.ErrUnsupported }
func mapNewlines(int) error { return errors.ErrUnsupported }
