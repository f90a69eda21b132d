// Package filelock keeps several processes of one user from changing a file at the same time.
//
// Package config takes the lock of a folder while it compares and replaces tenon.yaml, so that two edits at once do
// not lose one of them; the command line does so for its record of edits. Package servers/oauth locks the file of a
// sign-in while it refreshes the token, because some tokens can be used only once.
//
// The locks are advisory: they hold only against processes that take them too. The system frees them when a process
// ends, however it ends, so there are no stale locks to remove. On Unix a folder is locked itself, and no file appears
// in it. Windows cannot lock folders; there a file in the temporary folder is locked instead. Some network
// file systems know no locks, and return an error.
//
// Nothing waits in the system: a lock that is held is tried again every few milliseconds, so that a context ends the
// wait.
package filelock

import (
	"context"
	"os"
	"time"
)

// pause is the time between two attempts.
const pause = 20 * time.Millisecond

// File waits until it can lock an open file. unlock releases the lock and closes the file. On an error, File closes the
// file itself. Errors: the context's, and the system's.
func File(ctx context.Context, f *os.File) (unlock func(), err error) {
	for {
		ok, err := try(f)
		switch {
		case err != nil:
			_ = f.Close()
			return nil, err
		case ok:
			return func() { _ = f.Close() }, nil // closing releases the lock
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		}
	}
}

// Folder waits until it can lock a folder. The folder must exist.
func Folder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := open(dir)
	if err != nil {
		return nil, err
	}
	return File(ctx, f)
}
