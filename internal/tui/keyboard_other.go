//go:build !linux

package tui

import (
	"errors"
	"os"
)

// reopen returns an error: kqueue does not poll terminals on macOS, and Windows has no such files.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// These functions are never called, because there is no keyboard.
func stopProcess() error    { return errors.ErrUnsupported }
func mapNewlines(int) error { return errors.ErrUnsupported }
func waiting(int) int       { return 0 }
