package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// adminFile reads the administrator's file, or returns nil if there is none. If the file exists but cannot be trusted
// or read, that is an error, because its rules would be missing.
func (o Options) adminFile() (*file, error) {
	if o.Admin == "" {
		return nil, nil
	}
	if _, err := os.Lstat(o.Admin); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	data, err := o.readAdmin()
	if err != nil {
		return nil, &tenon.Error{Code: tenon.CodeConfig, Err: err,
			Message: "the administrator's file cannot be used: " + o.Admin + ": " + err.Error() +
				"; tenon does not start without it"}
	}
	return &file{src: &tree.Source{Label: filepath.ToSlash(o.Admin), Path: o.Admin, Dir: filepath.Dir(o.Admin),
		Layer: LayerAdmin}, data: data}, nil
}

// readAdmin checks who can write the file, and reads it. It resolves links first, so that the file that was checked
// is the file that is read.
func (o Options) readAdmin() ([]byte, error) {
	real, err := filepath.EvalSymlinks(o.Admin)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	check := o.CheckOwner
	if check == nil {
		check = onlyRootWrites
	}
	for _, dir := range []string{filepath.Dir(o.Admin), filepath.Dir(real)} {
		st, err := os.Stat(dir)
		if err == nil {
			err = check(dir, st)
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, errors.New(reason(err))
	case !st.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	}
	if err := check(real, st); err != nil {
		return nil, err
	}
	env := filepath.Join(filepath.Dir(o.Admin), ".env")
	if st, err := os.Stat(env); err == nil {
		if err := check(env, st); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, tree.MaxBytes+1))
	if err != nil {
		return nil, errors.New(reason(err))
	}
	return data, nil
}

// CheckAdmin checks only the administrator's file and returns its configuration, which is empty if there is no such
// file. The error has code config.
func CheckAdmin(o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := o.adminFile()
	if f == nil || err != nil {
		return &Config{}, err
	}
	s := &tree.Sink{}
	f.src.Vars = &tree.Variables{Lookup: o.LookupEnv, Home: o.Home}
	root := readTree(*f, o, s)
	dotenv(nil, f.src, s)
	checkLeast(root, LayerAdmin, s)
	root = withOwnNames(root, place{})
	applyProfile(root, false)
	c := &Config{floors: []floor{alone(f.src, root, s)}}
	if len(s.Errs) > 0 {
		return nil, Errors(tree.Sorted(s.Errs))
	}
	return c, nil
}
