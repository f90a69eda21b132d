package safezip

import (
	"cmp"
	"math"
	"slices"
)

// checkHeaders reads the local headers in the order of the archive. Each must agree with the directory, and
// the entries must fill the archive up to the directory without gaps and overlaps.
func (a *Archive) checkHeaders(directory int64) error {
	slices.SortFunc(a.files, func(x, y File) int { return cmp.Compare(x.header, y.header) })
	at := int64(0)
	for i := range a.files {
		f := &a.files[i]
		next := directory
		if i+1 < len(a.files) {
			next = a.files[i+1].header
		}
		if i+1 < len(a.files) && f.header == next {
			return a.share(f, &a.files[i+1])
		}
		if f.header > at {
			return a.bad("%d bytes before '%s' belong to no file", f.header-at, shown(f.Name))
		}
		described, err := a.checkHeader(f)
		if err != nil {
			return err
		}
		if at = f.data + f.packed; at > next && i+1 < len(a.files) {
			return a.share(f, &a.files[i+1])
		} else if at > next {
			return a.bad("'%s' reaches into the directory", shown(f.Name))
		}
		if f.flags&flagDescriptor == 0 || described && at == next {
			continue
		}
		if at, err = a.checkDescriptor(f, at, next); err != nil {
			return err
		}
	}
	if at != directory {
		return a.bad("%d bytes before its directory belong to no file", directory-at)
	}
	return nil
}

// checkHeader compares a local header with the directory and sets the offset of the content. It reports
// whether the header has the checksum and the sizes.
func (a *Archive) checkHeader(f *File) (described bool, err error) {
	var fixed [headerLength]byte
	if err := a.readAt(fixed[:], f.header); err != nil {
		return false, err
	}
	if string(fixed[:4]) != headerSignature {
		return false, a.bad("'%s' is not where the directory says", shown(f.Name))
	}
	name := make([]byte, len(f.Name))
	if int(le.Uint16(fixed[26:])) != len(name) {
		return false, a.disagree(f, "name")
	}
	if err := a.readAt(name, f.header+headerLength); err != nil {
		return false, err
	}
	if string(name) != f.Name {
		return false, a.disagree(f, "name")
	}
	extra := make([]byte, le.Uint16(fixed[28:]))
	if err := a.readAt(extra, f.header+headerLength+int64(len(name))); err != nil {
		return false, err
	}
	f.data = f.header + headerLength + int64(len(name)+len(extra))
	const compared = flagEncrypted | flagDescriptor | flagPatch | flagStrong | flagUTF8 | flagMasked
	if (le.Uint16(fixed[6:])^f.flags)&compared != 0 {
		return false, a.disagree(f, "flags")
	}
	if le.Uint16(fixed[8:]) != f.method {
		return false, a.disagree(f, "compression method")
	}
	sizes := []uint64{uint64(le.Uint32(fixed[22:])), uint64(le.Uint32(fixed[18:]))}
	saturated := sizes[0] == math.MaxUint32 && sizes[1] == math.MaxUint32
	if _, err := a.extra(f, extra, sizes); err != nil {
		return false, err
	}
	crc := le.Uint32(fixed[14:])
	described = crc == f.crc && sizes[0] == uint64(f.Unpacked) && sizes[1] == uint64(f.packed)
	switch {
	case described:
		return true, nil
	case f.flags&flagDescriptor == 0:
		return false, a.disagree(f, "size or checksum")
	case crc != 0 && crc != f.crc, !saturated && (sizes[0] != 0 && sizes[0] != uint64(f.Unpacked) || sizes[1] != 0 &&
		sizes[1] != uint64(f.packed)):
		return false, a.disagree(f, "size or checksum")
	}
	return false, nil
}

func (a *Archive) share(f, g *File) error {
	return a.bad("'%s' and '%s' share bytes of the archive", shown(f.Name), shown(g.Name))
}

func (a *Archive) disagree(f *File, what string) error {
	return a.bad("the header of '%s' and the directory disagree on its %s", shown(f.Name), what)
}

// checkDescriptor checks the data descriptor between the content and the next entry. Its signature is
// optional, and its sizes have 4 or 8 bytes (APPNOTE 4.3.9).
func (a *Archive) checkDescriptor(f *File, at, next int64) (end int64, err error) {
	var b [24]byte
	n := next - at
	if n != 12 && n != 16 && n != 20 && n != 24 {
		return 0, a.bad("the sizes of '%s' do not lead to the next entry", shown(f.Name))
	}
	if err := a.readAt(b[:n], at); err != nil {
		return 0, err
	}
	d := b[:n]
	if n == 16 || n == 24 {
		if string(d[:4]) != "PK\x07\x08" {
			return 0, a.disagree(f, "size or checksum")
		}
		d = d[4:]
	}
	packed, unpacked := uint64(le.Uint32(d[4:])), uint64(le.Uint32(d[8:]))
	if len(d) == 20 {
		packed, unpacked = le.Uint64(d[4:]), le.Uint64(d[12:])
	}
	if le.Uint32(d) != f.crc || packed != uint64(f.packed) || unpacked != uint64(f.Unpacked) {
		return 0, a.disagree(f, "size or checksum")
	}
	return next, nil
}
