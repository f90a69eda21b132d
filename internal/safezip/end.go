package safezip

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/tenonhq/tenon"
)

// Lengths and signatures of records (APPNOTE 4.3).
const (
	endLength        = 22
	locatorLength    = 20
	end64Length      = 56
	end64Fixed       = end64Length - 12 // counted by the record's own size field
	maxEnd64Extra    = 1024             // bytes of a ZIP64 end record's extension
	entryLength      = 46
	headerLength     = 30
	endSignature     = "PK\x05\x06"
	locatorSignature = "PK\x06\x07"
	end64Signature   = "PK\x06\x06"
	entrySignature   = "PK\x01\x02"
	headerSignature  = "PK\x03\x04"
)

var le = binary.LittleEndian

// endRecord is the position of the directory.
type endRecord struct {
	entries   uint64
	directory int64 // offset of its first byte
	size      int64
	at        int64 // offset of the first end record, where the directory must end
}

// findEnd reads the end record and its ZIP64 form. The record must be unique and end with the archive.
func (a *Archive) findEnd(size int64) (end endRecord, err error) {
	tail := make([]byte, min(max(size, 0), endLength+math.MaxUint16))
	if err := a.readAt(tail, max(size, 0)-int64(len(tail))); err != nil {
		return end, err
	}
	found, exact := -1, 0
	for at := len(tail) - endLength; at >= 0; at-- {
		if string(tail[at:at+4]) != endSignature {
			continue
		}
		if int(le.Uint16(tail[at+20:])) == len(tail)-at-endLength {
			exact++
			found = at
		}
	}
	switch {
	case exact > 1:
		return end, a.bad("it has %d end records", exact)
	case exact == 0 && bytes.Contains(tail, []byte(endSignature)):
		return end, a.bad("it is cut off, or bytes follow its end")
	case exact == 0:
		return end, tenon.Errorf(tenon.CodeInvalid, a.name+": %w", ErrFormat)
	}
	b := tail[found:]
	if le.Uint16(b[4:]) != 0 || le.Uint16(b[6:]) != 0 || le.Uint16(b[8:]) != le.Uint16(b[10:]) {
		return end, a.bad("it is a part of a split archive")
	}
	end.at = size - int64(len(b))
	end.entries, end.size, end.directory = uint64(le.Uint16(b[10:])), int64(le.Uint32(b[12:])), int64(le.Uint32(b[16:]))
	if found < locatorLength || string(tail[found-locatorLength:found-locatorLength+4]) != locatorSignature {
		return end, nil
	}
	return a.findEnd64(end, tail[found-locatorLength:found])
}

// findEnd64 reads the ZIP64 end record. Each field of the short record must be the same or all ones.
func (a *Archive) findEnd64(short endRecord, locator []byte) (end endRecord, err error) {
	at := le.Uint64(locator[8:])
	locatorAt := short.at - locatorLength
	if le.Uint32(locator[4:]) != 0 || le.Uint32(locator[16:]) != 1 || at > uint64(locatorAt) {
		return end, a.bad("its ZIP64 end record is not where the locator says")
	}
	var b [end64Length]byte
	if err := a.readAt(b[:], int64(at)); err != nil {
		return end, err
	}
	length := le.Uint64(b[4:])
	if string(b[:4]) != end64Signature || length < end64Fixed || length > end64Fixed+maxEnd64Extra ||
		int64(at)+12+int64(length) != locatorAt {
		return end, a.bad("its ZIP64 end record is not where the locator says")
	}
	entries, size, directory := le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	if le.Uint32(b[16:]) != 0 || le.Uint32(b[20:]) != 0 || le.Uint64(b[24:]) != entries {
		return end, a.bad("it is a part of a split archive")
	}
	if short.entries != math.MaxUint16 && short.entries != entries ||
		short.size != math.MaxUint32 && uint64(short.size) != size ||
		short.directory != math.MaxUint32 && uint64(short.directory) != directory {
		return end, a.bad("its two end records disagree")
	}
	if size > uint64(locatorAt) || directory > uint64(locatorAt) {
		return end, a.bad("its directory is outside the archive")
	}
	return endRecord{entries: entries, size: int64(size), directory: int64(directory), at: int64(at)}, nil
}

// checkEnd checks the directory's limits before the directory is read.
func (a *Archive) checkEnd(end endRecord, limits Limits) error {
	switch {
	case end.entries > uint64(limits.Files):
		return a.large("it has more than %d files", limits.Files)
	case end.size > limits.Directory:
		return a.large("its directory has more than %d bytes", limits.Directory)
	case end.directory+end.size != end.at:
		return a.bad("its directory is not directly before its end record")
	case uint64(end.size)/entryLength < end.entries:
		return a.bad("its directory is too short for %d entries", end.entries)
	}
	return nil
}
