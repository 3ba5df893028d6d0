// Decompositions: ATen ops in terms of simpler ATen ops. One function for each family; this list is the only place that knows them all.
#pragma once

#include "rewrite/aten.h"
#include "rewrite/rules.h"

namespace pt2onnx {

Rules<Aten> DecompositionRules();

// The same, and those that only a program in Core ATen needs: conversion lowers these ops as they are, to better models.
Rules<Aten> CoreRules();

}  // namespace pt2onnx
