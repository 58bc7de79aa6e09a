package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"skillmaster/chat"

	"github.com/parquet-go/parquet-go"
)

// warmData is a file of conversations that a warm start clones.
type warmData struct {
	File   string `json:"file"`   // JSON lines, or Parquet if its name ends in .parquet; empty: none
	SHA256 string `json:"sha256"` // of the file as it was when the run began
}

// look makes the path absolute and notes what the file holds.
func (d *warmData) look() error {
	if d.File == "" {
		return nil
	}
	path, err := filepath.Abs(d.File)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("warm_data: %w", err)
	}
	*d = warmData{path, hashOf(b)}
	return nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// read returns the conversations, if the file is still the one that was looked at.
func (d warmData) read() ([]chat.Conversation, error) {
	b, err := os.ReadFile(d.File)
	if err != nil {
		return nil, fmt.Errorf("warm_data: %w", err)
	}
	if got := hashOf(b); got != d.SHA256 {
		return nil, fmt.Errorf("%s has changed since the run began: its SHA-256 is %s and was %s (put the old file back, or start a new run)", d.File, got, d.SHA256)
	}
	if strings.EqualFold(filepath.Ext(d.File), ".parquet") {
		if b, err = parquetLines(b); err != nil {
			return nil, fmt.Errorf("%s: %w", d.File, err)
		}
	}
	out, err := chat.ReadConversations(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.File, err)
	}
	return out, nil
}

// parquetLines are the rows of a Parquet file as JSON lines.
func parquetLines(b []byte) (lines []byte, err error) {
	defer func() { // the library panics on some damaged files
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	r := parquet.NewGenericReader[any](f)
	defer r.Close()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	rows := make([]any, 64)
	for {
		n, err := r.Read(rows)
		for _, row := range rows[:n] {
			if err := e.Encode(row); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}
