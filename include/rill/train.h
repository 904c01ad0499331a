/* train.h: everything Rill has for training in C. */
#ifndef RILL_TRAIN_H_
#define RILL_TRAIN_H_

#include "rill/coordinator.h"
#include "rill/graph.h"
#include "rill/input.h"
#include "rill/layers.h"
#include "rill/optimizer.h"
#include "rill/saver.h"
#include "rill/server.h"
#include "rill/session.h"
#include "rill/strategy.h"
#include "rill/summary.h"
#include "rill/task.h"
#include "rill/training.h"
#include "rill/variable.h"

#endif
