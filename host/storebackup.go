package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
)

// The keys in a backup. Rows that another key signed are foreign, and encrypted values need the key of the sign-ins.
const (
	backupStoreKey = "keys/store.key"
	backupVaultKey = "keys/auth.key"
	vaultKeyFile   = "key"
)

// keyFiles returns the files of the keys that belong to the store: name in a backup → path.
func (k *StoreKeeper) keyFiles() map[string]string {
	files := map[string]string{}
	if path := k.cfg.keyPath(); path != "" {
		files[backupStoreKey] = path
	}
	if dir := k.cfg.vaultDir(); dir != "" {
		files[backupVaultKey] = filepath.Join(dir, vaultKeyFile)
	}
	return files
}

// Backup copies the store, and with keys the files of its keys, into a new folder. Keys in the system's keyring, in
// variables or in the configuration are not copied; then NoKey of the result says so. With keys, a store whose rows
// all have the signature of another key than the one that is found is an error of code store, because its backup would
// have no key. See [sqlite.Backup] for the other errors.
func (k *StoreKeeper) Backup(ctx context.Context, folder string, keys bool, progress StoreProgress) (*StoreBackup,
	error) {
	files, noKey := map[string]string{}, "it was left out"
	if keys {
		var err error
		if noKey, err = k.keyToCopy(ctx); err != nil {
			return nil, err
		}
		for name, path := range k.keyFiles() {
			if _, err := os.Stat(path); err == nil {
				files[name] = path
			}
		}
	}
	info, err := sqlite.Backup(ctx, k.path, folder, files, progress)
	if err == nil {
		info.NoKey = noKey
	}
	return info, err
}

// keyToCopy returns "" if the file of the store's key is copied into a backup, and otherwise why it is not. The error,
// of code store, is about a key that signed no row of the store, while there are signed ones.
func (k *StoreKeeper) keyToCopy(ctx context.Context) (noKey string, err error) {
	key, where, keyErr := k.findKey(ctx)
	own, others, err := sqlite.Signers(ctx, k.path, key)
	if err != nil {
		return "", err
	}
	file := k.cfg.keyPath()
	switch {
	case others > 0 && own == 0:
		why := where + " did not sign them"
		if key == nil {
			why = where + " is not there"
		}
		if keyErr != nil {
			why = keyErr.Error()
		}
		return "", tenon.Errorf(tenon.CodeStore, "store %s: no backup: the key that signed its rows (%d) would not be "+
			"in it, so they would be foreign after a restore: %s; %s; or run: tenon store backup --no-keys", k.path,
			others, why, cmp.Or(privatefile.AsOwner(k.path), "set "+keyVariable+", or HOME and XDG_STATE_HOME as its "+
				"tenon serve has them"))
	case key == nil:
		return "no key has signed anything yet", nil
	case where != file:
		return "it is in " + where, nil
	}
	return "", nil
}

// findKey returns the key that a host with this config would use for the store, or nil if it would create one, and
// where the key is. Root reads the key of another user, too: nothing is signed with it.
func (k *StoreKeeper) findKey(ctx context.Context) (key *signed.Key, where string, err error) {
	if text, ok := k.cfg.LookupEnv(keyVariable); ok && text != "" {
		key, err = namedKey(keyVariable, text)
		return key, keyVariable, err
	}
	secret, err := k.cfg.Config.StoreKey(ctx)
	if err != nil || !secret.IsZero() {
		if err == nil {
			key, err = namedKey("store.key", secret.Reveal())
		}
		return key, "store.key of the configuration", err
	}
	path := k.cfg.keyPath()
	key, err = signed.ReadKeyFile(path)
	var refused *privatefile.Refused
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cmp.Or(path, "a folder for the key"), nil
	case errors.As(err, &refused) && os.Geteuid() == 0:
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return nil, path, err
		}
		key, err = signed.ParseKeyFile(path, text)
	}
	return key, path, err
}

// Restore puts the store of a backup in the place of this store, where no store may be. It puts keys in the places
// where none are. Kept names the keys of the backup that differ from existing ones, which stay. NoKey of the result is
// set if the backup has no key, and says whether the rows are foreign. If root restores, new files and folders belong
// to the owner of the folder in which they are. See [sqlite.Restore].
func (k *StoreKeeper) Restore(ctx context.Context, folder string, progress StoreProgress) (info *StoreBackup,
	kept []string, err error) {
	if info, err = sqlite.Restore(ctx, folder, k.path, progress); err != nil {
		return nil, nil, err
	}
	for name, path := range k.keyFiles() {
		if info.Files[name] == "" {
			continue
		}
		same, err := restoreKey(filepath.Join(folder, name), path)
		if err != nil {
			return info, nil, tenon.Errorf(tenon.CodeStore, "the store is restored, but not its key %s: %w", path, err)
		}
		if !same {
			kept = append(kept, path)
		}
	}
	sort.Strings(kept)
	if info.Files[backupStoreKey] == "" {
		info.NoKey, err = k.withoutKey(ctx)
	}
	return info, kept, err
}

// withoutKey says what a backup without a key means for the restored store.
func (k *StoreKeeper) withoutKey(ctx context.Context) (string, error) {
	key, where, keyErr := k.findKey(ctx)
	own, others, err := sqlite.Signers(ctx, k.path, key)
	switch {
	case err != nil:
		return "", err
	case others == 0:
		return fmt.Sprintf("%s signed its rows (%d)", where, own), nil
	case keyErr != nil:
		where = keyErr.Error()
	}
	return fmt.Sprintf("%d of its %d signed rows are foreign here: put the key that signed them in %s, or take them "+
		"over with tenon store adopt", others, own+others, where), nil
}

// restoreKey puts a key in its place. It keeps another key that is there, and then returns false.
func restoreKey(from, to string) (same bool, err error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	if err := privatefile.MakeFolders(filepath.Dir(to)); err != nil {
		return false, err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		old, err := os.ReadFile(to)
		return string(old) == string(text), err
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = privatefile.HandOver(f)
	}
	if err == nil {
		err = f.Sync()
	}
	return true, errors.Join(err, f.Close())
}
