//go:build race

package textworld_test

const raceDetector = true
