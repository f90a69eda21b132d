package safezip

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/tenonhq/tenon"
)

// Compression methods and flags of entries (APPNOTE 4.4.4, 4.4.5).
const (
	methodStore   = 0
	methodDeflate = 8

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3 // sizes and checksum follow the content
	flagPatch      = 1 << 5
	flagStrong     = 1 << 6 // strong encryption
	flagUTF8       = 1 << 11
	flagMasked     = 1 << 13 // headers are encrypted
)

// Tags of extra fields (APPNOTE 4.5, 4.6.9).
const (
	extraZip64   = 0x0001
	extraUnicode = 0x7075 // another name of the entry
)

// maxName bounds the bytes of a name.
const maxName = 1000

// deflateRatio is the highest ratio that deflate can reach; a few bytes are added for its first block.
const (
	deflateRatio = 1032
	deflateFirst = 1024
)

// readDirectory reads all entries of the directory, one at a time.
func (a *Archive) readDirectory(end endRecord, limits Limits) error {
	section := io.NewSectionReader(a.r, end.directory, end.size)
	in := bufio.NewReaderSize(section, 32<<10)
	a.files = make([]File, 0, end.entries)
	left := limits.Unpacked
	var fixed [entryLength]byte
	var rest []byte // reused for the name and the extra fields
	for range end.entries {
		if err := a.fill(in, fixed[:]); err != nil {
			return err
		}
		if string(fixed[:4]) != entrySignature {
			return a.bad("entry %d of its directory is damaged", len(a.files)+1)
		}
		n := int(le.Uint16(fixed[28:]))
		if need := n + int(le.Uint16(fixed[30:])); cap(rest) < need {
			rest = make([]byte, need)
		} else {
			rest = rest[:need]
		}
		if err := a.fill(in, rest); err != nil {
			return err
		}
		if _, err := in.Discard(int(le.Uint16(fixed[32:]))); err != nil {
			return a.cutOff(err)
		}
		f, err := a.entry(fixed[:], rest[:n], rest[n:])
		if err != nil {
			return err
		}
		if left -= f.Unpacked; left < 0 {
			return a.large("the unpacked files exceed %d MiB", limits.Unpacked>>20)
		}
		if err := a.checkSizes(&f); err != nil {
			return err
		}
		if f.header >= end.directory {
			return a.bad("'%s' is not inside the archive", shown(f.Name))
		}
		a.files = append(a.files, f)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return a.bad("its directory has more than %d entries", end.entries)
	}
	return nil
}

func (a *Archive) fill(in io.Reader, b []byte) error {
	_, err := io.ReadFull(in, b)
	return a.cutOff(err)
}

func (a *Archive) cutOff(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a.bad("its directory is cut off")
	}
	return tenon.Errorf(tenon.CodeStore, a.name+": %w", err)
}

// entry decodes an entry of the directory and checks what does not depend on other entries.
func (a *Archive) entry(fixed, name, extra []byte) (File, error) {
	f := File{Name: string(name), flags: le.Uint16(fixed[8:]), method: le.Uint16(fixed[10:]),
		crc: le.Uint32(fixed[16:])}
	f.folder = strings.HasSuffix(f.Name, "/")
	if reason := checkName(f.Name); reason != "" {
		return f, a.bad("the file '%s' has a name %s", shown(f.Name), reason)
	}
	sizes := []uint64{uint64(le.Uint32(fixed[24:])), uint64(le.Uint32(fixed[20:])), uint64(le.Uint32(fixed[42:]))}
	disk, err := a.extra(&f, extra, sizes)
	if err != nil {
		return f, err
	}
	if d := le.Uint16(fixed[34:]); d != 0 && (d != math.MaxUint16 || disk != 0) {
		return f, a.bad("'%s' is in another part of a split archive", shown(f.Name))
	}
	for _, n := range sizes {
		if n > math.MaxInt64>>1 {
			return f, a.large("'%s' claims %d bytes", shown(f.Name), n)
		}
	}
	f.Unpacked, f.packed, f.header = int64(sizes[0]), int64(sizes[1]), int64(sizes[2])
	return f, a.checkKind(&f, fixed[5], le.Uint32(fixed[38:]))
}

// extra reads the extra fields. Sizes that are all ones take their values from the ZIP64 field.
func (a *Archive) extra(f *File, extra []byte, sizes []uint64) (disk uint32, err error) {
	long := false
	for len(extra) >= 4 {
		tag, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return 0, a.bad("an extra field of '%s' is damaged", shown(f.Name))
		}
		data := extra[4 : 4+n]
		extra = extra[4+n:]
		switch tag {
		case extraZip64:
			if long {
				return 0, a.bad("'%s' has its ZIP64 field twice", shown(f.Name))
			}
			long = true
			for i := range sizes {
				if sizes[i] != math.MaxUint32 {
					continue
				}
				if len(data) < 8 {
					return 0, a.bad("the ZIP64 field of '%s' is too short", shown(f.Name))
				}
				sizes[i], data = le.Uint64(data), data[8:]
			}
			if len(data) == 4 {
				disk = le.Uint32(data)
			}
		case extraUnicode:
			if n < 5 || string(data[5:]) != f.Name {
				return 0, a.bad("'%s' has two different names", shown(f.Name))
			}
		}
	}
	for _, b := range extra {
		if b != 0 { // some programs align with zeros
			return 0, a.bad("an extra field of '%s' is damaged", shown(f.Name))
		}
	}
	return disk, nil
}

// Attributes of entries: Unix file types are in the upper half, DOS file types in the lower half.
const (
	unixTypes     = 0o170000
	unixRegular   = 0o100000
	unixFolder    = 0o040000
	dosFolder     = 0x10
	dosReparse    = 0x400 // a link of NTFS
	creatorUnix   = 3
	creatorMacOSX = 19
)

// checkKind refuses everything but regular files and folders, and contents that cannot be read.
func (a *Archive) checkKind(f *File, creator byte, attributes uint32) error {
	kind := attributes >> 16 & unixTypes
	dos := creator != creatorUnix && creator != creatorMacOSX
	switch {
	case kind != 0 && kind != unixRegular && kind != unixFolder, dos && attributes&dosReparse != 0:
		return a.bad("'%s' is not a regular file; links are not unpacked", shown(f.Name))
	case !f.folder && (kind == unixFolder || dos && attributes&dosFolder != 0):
		return a.bad("'%s' is a folder with the name of a file", shown(f.Name))
	case f.folder && kind == unixRegular, f.folder && f.Unpacked != 0:
		return a.bad("the folder '%s' has content", shown(f.Name))
	case f.flags&(flagEncrypted|flagStrong|flagMasked) != 0:
		return a.bad("'%s' is encrypted", shown(f.Name))
	case f.flags&flagPatch != 0:
		return a.bad("'%s' is a patch", shown(f.Name))
	case f.method != methodStore && f.method != methodDeflate:
		return a.bad("'%s' has compression method %d; only store (0) and deflate (8) are supported", shown(f.Name),
			f.method)
	}
	return nil
}

// checkSizes refuses pairs of sizes that the method cannot produce.
func (a *Archive) checkSizes(f *File) error {
	switch {
	case f.method == methodStore && f.packed != f.Unpacked:
		return a.bad("'%s' is stored, but has two sizes: %d and %d bytes", shown(f.Name), f.packed, f.Unpacked)
	case f.method == methodDeflate && (f.Unpacked-deflateFirst)/deflateRatio > f.packed:
		return a.large("'%s' claims %d bytes, but deflate cannot pack so many into %d bytes", shown(f.Name),
			f.Unpacked, f.packed)
	}
	return nil
}
