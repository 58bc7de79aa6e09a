package track

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"skillmaster/report"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields of Event, Summary, Summary.Value and SessionLog (tensorboard/compat/proto/event.proto, summary.proto).
const (
	eventTime, eventStep, eventVersion, eventSummary, eventSession = 1, 2, 3, 5, 7

	summaryValue         = 1
	valueTag, valueFloat = 1, 2

	sessionStatus, sessionStart = 1, 1
)

// versionOfEvents makes TensorBoard heed the starts of sessions.
const versionOfEvents = "brain.Event:2"

// ErrNotOurs means that a file is not what this package would have written.
var ErrNotOurs = errors.New("it is not an event file of this run")

// TensorBoard brings the event file of a run in a folder up to date, and returns how many rounds it wrote. Rounds that
// the file has already are not written again. If the file has rounds that the run has taken back (it went on from an
// earlier checkpoint), the start of a session is noted at the first of them, from which on TensorBoard forgets what came
// before. What a crash left unfinished at the end of the file is cut off. Other runs' event files in the folder are
// ErrNotOurs: TensorBoard would take all for one run. One at a time may write a file.
//
// TensorBoard keeps 32-bit floats: numbers beyond their range stand there as infinite.
func TensorBoard(folder string, h *report.History) (written int, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	path := filepath.Join(folder, fmt.Sprintf("events.out.tfevents.%d.skillmaster", h.Manifest.Created.Unix()))
	if err := alone(path); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	content, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	records, whole, err := readRecords(content)
	if err == nil {
		content, written, err = missing(records, h)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: remove it, or choose another folder", path, err)
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return 0, err
	}
	if len(content) == 0 {
		return 0, nil
	}
	if _, err := f.WriteAt(content, int64(whole)); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return written, f.Sync()
}

// alone refuses a folder with event files other than path.
func alone(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "tfevents") && e.Name() != filepath.Base(path) {
			return fmt.Errorf("%s: %w: choose another folder", filepath.Join(filepath.Dir(path), e.Name()), ErrNotOurs)
		}
	}
	return nil
}

// missing are the records that a file with the given ones lacks, framed, and how many rounds are among them.
func missing(records [][]byte, h *report.History) (framed []byte, rounds int, err error) {
	first := versionEvent(seconds(h.Manifest.Created))
	if len(records) == 0 {
		framed = appendRecord(nil, first)
	} else if !bytes.Equal(records[0], first) {
		return nil, 0, ErrNotOurs
	}
	have, err := standing(records)
	if err != nil {
		return nil, 0, err
	}
	want := Rounds(h)
	same := 0
	for same < min(len(have), len(want)) && bytes.Equal(have[same].record, roundEvent(want[same])) {
		same++
	}
	if same < len(have) {
		framed = appendRecord(framed, startEvent(seconds(h.Last()), have[same].step))
	}
	for _, r := range want[same:] {
		framed = appendRecord(framed, roundEvent(r))
	}
	return framed, len(want) - same, nil
}

// event is a record with what counts of it.
type event struct {
	record []byte
	step   int64
	start  bool
}

// standing are the rounds of a file that no later start of a session has made void.
func standing(records [][]byte) ([]event, error) {
	var out []event
	for _, r := range records[min(1, len(records)):] {
		e, err := readEvent(r)
		if err != nil {
			return nil, err
		}
		if !e.start {
			out = append(out, e)
			continue
		}
		for len(out) > 0 && out[len(out)-1].step >= e.step {
			out = out[:len(out)-1]
		}
	}
	return out, nil
}

func readEvent(record []byte) (event, error) {
	e := event{record: record}
	for b := record; len(b) > 0; {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return e, fmt.Errorf("%w (%w)", ErrNotOurs, protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			return e, fmt.Errorf("%w (%w)", ErrNotOurs, protowire.ParseError(size))
		}
		switch {
		case field == eventStep && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(b[n:])
			e.step = int64(v)
		case field == eventSession:
			e.start = true
		}
		b = b[n+size:]
	}
	return e, nil
}

func eventHead(wall float64, step int64) []byte {
	b := protowire.AppendTag(nil, eventTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(wall))
	if step != 0 {
		b = protowire.AppendTag(b, eventStep, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(step))
	}
	return b
}

func versionEvent(wall float64) []byte {
	b := protowire.AppendTag(eventHead(wall, 0), eventVersion, protowire.BytesType)
	return protowire.AppendString(b, versionOfEvents)
}

// startEvent is the start of a session whose first step is step.
func startEvent(wall float64, step int64) []byte {
	session := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart)
	b := protowire.AppendTag(eventHead(wall, step), eventSession, protowire.BytesType)
	return protowire.AppendBytes(b, session)
}

// roundEvent has all numbers of a round, by key.
func roundEvent(r Round) []byte {
	var summary []byte
	for _, key := range r.Keys() {
		v := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), key)
		v = protowire.AppendTag(v, valueFloat, protowire.Fixed32Type)
		v = protowire.AppendFixed32(v, math.Float32bits(float32(r.Values[key])))
		summary = protowire.AppendBytes(protowire.AppendTag(summary, summaryValue, protowire.BytesType), v)
	}
	b := protowire.AppendTag(eventHead(seconds(r.Kept.Kept), int64(r.Report)), eventSummary, protowire.BytesType)
	return protowire.AppendBytes(b, summary)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the CRC32C of b as record files have it: rotated right by 15 bits, plus a constant.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord frames a record: length (8 bytes, little-endian), masked CRC of these, content, masked CRC of it.
func appendRecord(b, content []byte) []byte {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(content)))
	b = append(b, head...)
	b = binary.LittleEndian.AppendUint32(b, masked(head))
	b = append(b, content...)
	return binary.LittleEndian.AppendUint32(b, masked(content))
}

// readRecords splits a file. whole is where its last whole record ends; after that there may be the beginning of
// another. A wrong checksum is an error.
func readRecords(b []byte) (records [][]byte, whole int, err error) {
	const head, tail = 12, 4
	for rest := b; len(rest) >= head; rest = b[whole:] {
		if binary.LittleEndian.Uint32(rest[8:]) != masked(rest[:8]) {
			return nil, 0, fmt.Errorf("the length of record %d has a wrong checksum: %w", len(records), ErrNotOurs)
		}
		n := binary.LittleEndian.Uint64(rest)
		if n > uint64(len(rest)) || len(rest) < head+int(n)+tail {
			break
		}
		content := rest[head : head+n]
		if binary.LittleEndian.Uint32(rest[head+n:]) != masked(content) {
			return nil, 0, fmt.Errorf("record %d has a wrong checksum: %w", len(records), ErrNotOurs)
		}
		records = append(records, content)
		whole += head + int(n) + tail
	}
	return records, whole, nil
}
