"""The categories of the offline annotator, and the words that stand for them.

Open vocabulary stays possible: an LLM may name others, and `categories` adds noun phrases where nothing here fits.
Words are compared by stem; a phrase of two words counts as one. The order breaks ties.
"""

from __future__ import annotations

TAXONOMY: dict[str, str] = {
    "database": """
        database, sql, postgres, postgresql, mysql, sqlite, mongodb, redis, schema, query, index, migration,
        transaction, pgvector, dynamodb, cassandra, replica, orm, sharding
    """,
    "programming": """
        code, codebase, function, bug, refactor, python, javascript, typescript, java, rust, golang, react,
        library, framework, compiler, algorithm, debug, variable, api, sdk, git, commit, pull request, code
        review, merge, lint, async, callback, backend, frontend, repo, repository, fastapi, django, programming
    """,
    "testing": "test, pytest, unit test, integration test, coverage, flaky, regression, assertion, mock, qa, benchmark",
    "devops": """
        deploy, deployment, docker, kubernetes, terraform, ansible, pipeline, jenkins, ci, cluster, server,
        monitoring, grafana, prometheus, outage, incident, rollback, staging, production, container, helm, cron,
        aws, azure, gcp, cloud, infrastructure, release
    """,
    "architecture": """
        architecture, microservice, monolith, scalability, latency, throughput, cache, queue, event driven, load
        balancer, design pattern, trade-off, service mesh
    """,
    "artificial_intelligence": """
        llm, model, embedding, prompt, machine learning, neural network, inference, gpt, claude, chatbot,
        fine-tuning, rag, dataset, classifier, openai, vector search
    """,
    "security": """
        security, password, vulnerability, authentication, authorization, oauth, encryption, token, breach,
        firewall, phishing, certificate, permission, secret, malware, two factor, login
    """,
    "data_analysis": """
        analytics, dashboard, report, metric, statistics, chart, spreadsheet, excel, pandas, forecast, kpi,
        survey, data analysis
    """,
    "design": "design, figma, logo, layout, typography, color palette, mockup, wireframe, ux, ui, prototype, branding",
    "project_management": """
        project, deadline, milestone, roadmap, sprint, backlog, launch, kanban, scope, estimate, deliverable,
        stakeholder, planning, jira, ticket, priority, timeline, requirement
    """,
    "team_workflow": """
        team, standup, stand-up, retrospective, workflow, onboarding, handover, collaboration, colleague,
        coworker, process, convention, on-call, rotation, pairing
    """,
    "meetings": "meeting, call, agenda, appointment, conference call, one-on-one, sync, interview, workshop",
    "communication": """
        email, message, chat, slack, letter, reply, phone, feedback, announcement, newsletter, tone, wording,
        writing style, presentation, commit message
    """,
    "work": """
        work, job, office, career, boss, manager, employer, promotion, salary, company, client, customer, hire,
        resume, colleague, freelance, internship, shift, profession, engineer, remote work
    """,
    "business": """
        business, sales, revenue, contract, marketing, startup, investor, vendor, market, product, pricing,
        strategy, partnership, competitor, campaign, merger, acquisition
    """,
    "finance": """
        money, budget, invoice, bank, loan, mortgage, tax, investment, stock, savings, debt, insurance, rent,
        price, cost, payment, expense, pension, credit card, crypto, currency, salary
    """,
    "legal": """
        law, lawyer, lawsuit, court, legal, license, compliance, gdpr, regulation, patent, visa, permit,
        contract
    """,
    "family": """
        family, mother, father, mom, mum, dad, sister, brother, son, daughter, child, kid, baby, parent, wife,
        husband, spouse, grandmother, grandfather, grandma, grandpa, aunt, uncle, cousin, nephew, niece, sibling
    """,
    "relationships": """
        friend, friendship, girlfriend, boyfriend, partner, dating, wedding, marriage, married, engaged,
        divorce, neighbor, neighbour, roommate, breakup, anniversary
    """,
    "pets": "pet, dog, cat, puppy, kitten, parrot, hamster, rabbit, vet, aquarium, leash",
    "health": """
        health, doctor, hospital, allergy, allergic, medicine, medication, illness, sick, pain, therapy,
        therapist, surgery, dentist, diet, sleep, stress, anxiety, diabetes, vaccine, symptom, injury, headache,
        pregnancy, blood pressure, mental health
    """,
    "fitness": """
        gym, workout, exercise, yoga, marathon, jogging, pilates, cycling, swimming, weightlifting, hike
    """,
    "food": """
        food, cook, recipe, restaurant, dinner, lunch, breakfast, coffee, tea, vegetarian, vegan, pizza, bake,
        cake, cuisine, meal, snack, wine, beer, sushi, pasta, cheese, chocolate, vegetable, fruit, meat, fish,
        dessert, eat, drink, spicy, bread, kitchen, peanut
    """,
    "travel": """
        travel, trip, flight, hotel, vacation, airport, visit, passport, tourist, luggage, itinerary, cruise,
        abroad, holiday, sightseeing, booking, backpacking
    """,
    "transport": """
        car, bus, train, bike, bicycle, drive, traffic, subway, commute, parking, vehicle, motorcycle, electric
        car
    """,
    "home": """
        house, home, apartment, flat, kitchen, garden, furniture, landlord, neighborhood, renovation, move,
        moved, room, sofa, cleaning, plumber, roof, rent, address, lives
    """,
    "education": """
        school, university, college, student, teacher, course, exam, homework, degree, class, study, lecture,
        phd, thesis, scholarship, tutor, graduation, learn, lesson
    """,
    "language_learning": """
        spanish, french, german, italian, japanese, mandarin, vocabulary, grammar, fluent, duolingo, bilingual,
        pronunciation, translation
    """,
    "entertainment": """
        movie, film, series, netflix, show, game, video game, concert, theater, theatre, comedy, cinema,
        podcast, festival, board game, television, anime
    """,
    "music": """
        music, song, band, guitar, piano, violin, cello, album, sing, choir, orchestra, jazz, playlist, drum,
        concert
    """,
    "reading": "book, novel, author, library, poem, poetry, magazine, chapter, bookshop, read",
    "sports": """
        football, soccer, tennis, basketball, baseball, hockey, golf, match, league, championship, olympics,
        coach, athlete, ski, climbing, surfing, cricket, rugby, team sport
    """,
    "hobbies": """
        hobby, paint, painting, photography, knitting, gardening, craft, pottery, chess, collect, woodworking,
        drawing, puzzle, camping, fishing, sewing
    """,
    "shopping": """
        shopping, buy, purchase, store, shop, gift, clothes, discount, delivery, warranty, refund, brand
    """,
    "technology": """
        phone, laptop, computer, iphone, android, app, gadget, headphones, camera, printer, wi-fi, internet,
        tablet, software, device, hardware
    """,
    "events": """
        birthday, party, christmas, thanksgiving, easter, ceremony, celebration, conference, funeral, reunion,
        graduation, festival
    """,
    "schedule": """
        schedule, calendar, tomorrow, reminder, weekly, daily, every morning, monday, tuesday, wednesday,
        thursday, friday, appointment, routine, availability
    """,
    "personal_identity": "name is, birthday, born, age, nationality, years old, pronouns, personality, religion",
    "politics": """
        election, president, minister, government, parliament, vote, senate, policy, party leader, protest,
        treaty, sanction, diplomat
    """,
    "environment": """
        climate, weather, rain, storm, recycling, solar, energy, pollution, wildlife, forest, earthquake, flood
    """,
    "science": """
        research, physics, chemistry, biology, experiment, laboratory, scientist, astronomy, space, mathematics,
        quantum
    """,
}
