//go:build !linux

package pty

import (
	"errors"
	"os"
)

// Open returns errors.ErrUnsupported.
func Open(columns, rows int) (control, terminal *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}
