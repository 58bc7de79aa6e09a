//go:build race

package webshop

const raceDetector = true
