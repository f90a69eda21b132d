//go:build unix

package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestREL_foreignOwner: root is never told to take the files of another user, such as the store of a service, which
// would not start any more.
func TestREL_foreignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const service = 65522
	dir := t.TempDir()
	file := filepath.Join(dir, "tenon.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, service, service); err != nil {
		t.Fatal(err)
	}
	err := Check(file)
	if err == nil || strings.Contains(err.Error(), "chown") ||
		!strings.Contains(err.Error(), "belongs to user 65522; run the command as that user") ||
		!strings.Contains(err.Error(), "sudo setpriv --reuid=65522 --regid=65522 --clear-groups env") {
		t.Errorf("%v", err)
	}
}
