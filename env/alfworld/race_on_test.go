//go:build race

package alfworld

const raceDetector = true
