"""Drives the programs of models.py on session targets and returns their losses; the same code runs Rill and the reference."""
import concurrent.futures
import contextlib

import models
import tensorflow.compat.v1 as tf

STEPS = 22


def config(**more):
    """A session configuration with which no call can wait for ever."""
    more.setdefault("operation_timeout_in_ms", 60000)
    more.setdefault("allow_soft_placement", False)
    return tf.ConfigProto(**more)


def session(target, graph=None, **more):
    return tf.Session(target, graph=graph, config=config(**more))


def in_graph_losses(target, model, kind, ps, workers, sync, place=True, optimizer="sgd", steps=STEPS):
    p = models.in_graph(model, kind, ps, workers, optimizer=optimizer, sync=sync, place=place)
    data = models.batches(steps * workers)
    losses = []
    with session(target, p.graph) as s:
        s.run(p.init_op)
        for step in range(steps):
            mine = data[step * workers:(step + 1) * workers]
            feeds = {t[0]: d[0] for t, d in zip(p.towers, mine)}
            feeds.update({t[1]: d[1] for t, d in zip(p.towers, mine)})
            if sync:
                values, _ = s.run([[t[2] for t in p.towers], p.towers[0][3]], feeds)
                losses += values
            else:
                for t in p.towers:
                    losses.append(s.run([t[2], t[3]], feeds)[0])
        assert s.run(p.global_step) == (steps if sync else steps * workers)
    return losses


def between_graph_async_losses(targets, model, kind, ps, place=True, optimizer="sgd", steps=STEPS):
    """Each worker has its own graph and session; they take turns, so the losses are the same every time."""
    workers = len(targets)
    programs = [models.between_graph(model, kind, ps, workers, w, optimizer, place=place) for w in range(workers)]
    data = models.batches(steps * workers)
    losses = []
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(tf.Session(t, graph=p.graph, config=config()))
                    for t, p in zip(targets, programs)]
        sessions[0].run(programs[0].init_op)
        for i, (images, labels) in enumerate(data):
            x, y, loss, train_op = programs[i % workers].towers[0]
            losses.append(sessions[i % workers].run([loss, train_op], {x: images, y: labels})[0])
        assert sessions[-1].run(programs[-1].global_step) == len(data)
    return losses


def between_graph_sync_losses(targets, model, kind, ps, place=True, optimizer="sgd", steps=STEPS):
    """SyncReplicasOptimizer: every worker pushes one gradient a round and waits for the token of the chief's update."""
    workers = len(targets)
    programs = [models.between_graph(model, kind, ps, workers, w, optimizer, True, place) for w in range(workers)]
    data = models.batches(steps * workers)
    losses = []
    coordinator = tf.train.Coordinator()
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(tf.Session(t, graph=p.graph, config=config()))
                    for t, p in zip(targets, programs)]
        sessions[0].run(programs[0].init_op)
        for s, p in zip(sessions, programs):
            assert s.run(p.ready_for_local_init_op).size == 0
            s.run(p.local_init_op)
        threads = programs[0].chief_queue_runner.create_threads(sessions[0], coordinator, daemon=True, start=True)
        sessions[0].run(programs[0].init_tokens_op)
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(workers))

        def one(worker, step):
            x, y, loss, train_op = programs[worker].towers[0]
            images, labels = data[step * workers + worker]
            return sessions[worker].run([loss, train_op], {x: images, y: labels})[0]

        for step in range(steps):
            losses += pool.map(one, range(workers), [step] * workers)
        assert sessions[-1].run(programs[-1].global_step) == steps
        coordinator.request_stop()
        for s in sessions:
            s.close()
        coordinator.join(threads, stop_grace_period_secs=20, ignore_live_threads=True)
    return losses
